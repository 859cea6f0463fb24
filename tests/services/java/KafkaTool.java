import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own clients behind a socket: a line of JSON asks, a line of JSON answers. Bytes are in base64, null is null.
 * Every request brings the settings of the clients. It prints the port that it listens to.
 */
public final class KafkaTool {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** One for each set of settings that was asked with. */
    private static final Map<Map<String, String>, KafkaTool> TOOLS = new ConcurrentHashMap<>();

    private final Map<String, String> common;
    private Admin admin;
    /** Producers whose transaction is open, or may be opened again. */
    private final Map<String, Transactional> transactional = new ConcurrentHashMap<>();

    private static final class Transactional {
        final KafkaProducer<byte[], byte[]> producer;
        boolean isOpen;

        Transactional(KafkaProducer<byte[], byte[]> producer) {
            this.producer = producer;
        }
    }

    private KafkaTool(Map<String, String> common) {
        this.common = common;
    }

    public static void main(String[] args) throws IOException {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        System.out.println("port " + server.getLocalPort());
        System.out.flush();
        while (true) {
            Socket socket = server.accept();
            Thread thread = new Thread(() -> serve(socket));
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void serve(Socket socket) {
        try (socket) {
            BufferedReader reader = new BufferedReader(
                new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            OutputStream out = socket.getOutputStream();
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                out.write(JSON.writeValueAsBytes(answer(line)));
                out.write('\n');
                out.flush();
            }
        } catch (IOException gone) {
            System.err.println("a connection ended: " + gone);
        }
    }

    private static ObjectNode answer(String line) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            JsonNode request = JSON.readTree(line);
            KafkaTool tool = TOOLS.computeIfAbsent(texts(request.get("settings")), KafkaTool::new);
            answer.set("result", tool.execute(request.get("operation").asText(), request));
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            answer.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
        return answer;
    }

    private static Map<String, String> texts(JsonNode object) {
        Map<String, String> map = new HashMap<>();
        object.fields().forEachRemaining(entry -> map.put(entry.getKey(), entry.getValue().asText()));
        return map;
    }

    private synchronized Admin admin() {
        if (admin == null) admin = Admin.create(settings());
        return admin;
    }

    private JsonNode execute(String operation, JsonNode request) throws Exception {
        return switch (operation) {
            case "createTopic" -> createTopic(request);
            case "deleteTopic" -> {
                admin().deleteTopics(List.of(request.get("topic").asText())).all().get();
                yield JSON.nullNode();
            }
            case "addPartitions" -> {
                NewPartitions total = NewPartitions.increaseTo(request.get("partitions").asInt());
                admin().createPartitions(Map.of(request.get("topic").asText(), total)).all().get();
                yield awaitLeaders(request.get("topic").asText(), request.get("partitions").asInt());
            }
            case "deleteRecords" -> {
                TopicPartition partition = new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
                RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
                admin().deleteRecords(Map.of(partition, before)).all().get();
                yield JSON.nullNode();
            }
            case "awaitWhole" -> awaitLeaders(request.get("topic").asText(), 1);
            case "partitions" -> partitions(request.get("topic").asText());
            case "offsets" -> offsets(request.get("topic").asText());
            case "groupOffsets" -> groupOffsets(request.get("group").asText());
            case "records" -> records(request);
            case "produce" -> produce(request);
            default -> throw new IllegalArgumentException("no operation " + operation);
        };
    }

    private JsonNode createTopic(JsonNode request) throws Exception {
        String name = request.get("topic").asText();
        int partitions = request.get("partitions").asInt();
        NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.empty()).configs(texts(request.get("configs")));
        admin().createTopics(List.of(topic)).all().get();
        return awaitLeaders(name, partitions);
    }

    /** Until every partition has its leader and all its replicas in step. */
    private JsonNode awaitLeaders(String topic, int count) throws Exception {
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (true) {
            JsonNode partitions = partitionsOrEmpty(topic);
            boolean isWhole = partitions.size() >= count;
            for (JsonNode partition : partitions) {
                isWhole &= partition.get("leader").asInt() >= 0
                    && partition.get("inSync").size() == partition.get("replicas").size();
            }
            if (isWhole) return partitions;
            if (System.nanoTime() > deadline) throw new IllegalStateException("not whole after 60 s: " + partitions);
            Thread.sleep(20);
        }
    }

    private JsonNode partitionsOrEmpty(String topic) throws Exception {
        try {
            return partitions(topic);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof org.apache.kafka.common.errors.UnknownTopicOrPartitionException) {
                return JSON.createArrayNode(); // a broker has not heard of it yet
            }
            throw error;
        }
    }

    private JsonNode partitions(String topic) throws Exception {
        ArrayNode list = JSON.createArrayNode();
        for (TopicPartitionInfo info : admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
            ObjectNode partition = list.addObject();
            partition.put("partition", info.partition());
            partition.put("leader", info.leader() == null ? -1 : info.leader().id());
            ArrayNode replicas = partition.putArray("replicas");
            for (Node node : info.replicas()) replicas.add(node.id());
            ArrayNode inSync = partition.putArray("inSync");
            for (Node node : info.isr()) inSync.add(node.id());
        }
        return list;
    }

    private List<TopicPartition> partitionsOf(String topic) throws Exception {
        List<TopicPartition> list = new ArrayList<>();
        for (JsonNode partition : partitions(topic)) list.add(new TopicPartition(topic, partition.get("partition").asInt()));
        return list;
    }

    private JsonNode offsets(String topic) throws Exception {
        ArrayNode list = JSON.createArrayNode();
        for (TopicPartition partition : partitionsOf(topic)) {
            ObjectNode offsets = list.addObject();
            offsets.put("partition", partition.partition());
            offsets.put("earliest", offset(partition, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED));
            offsets.put("stable", offset(partition, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED));
            offsets.put("end", offset(partition, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED));
        }
        return list;
    }

    private long offset(TopicPartition partition, OffsetSpec spec, IsolationLevel isolation) throws Exception {
        return admin().listOffsets(Map.of(partition, spec), new ListOffsetsOptions(isolation))
            .partitionResult(partition).get().offset();
    }

    private JsonNode groupOffsets(String group) throws Exception {
        ArrayNode list = JSON.createArrayNode();
        Map<TopicPartition, OffsetAndMetadata> offsets =
            admin().listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        offsets.forEach((partition, offset) -> {
            if (offset == null) return;
            ObjectNode entry = list.addObject();
            entry.put("topic", partition.topic());
            entry.put("partition", partition.partition());
            entry.put("offset", offset.offset());
            entry.put("metadata", offset.metadata());
        });
        return list;
    }

    /** All records from the first that is kept up to what was the end, or the end of what was decided, at the call. */
    private JsonNode records(JsonNode request) throws Exception {
        Properties settings = settings();
        settings.put("isolation.level", request.get("isolation").asText());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        ArrayNode list = JSON.createArrayNode();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = partitionsOf(request.get("topic").asText());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + 60_000_000_000L;
            while (!hasReached(consumer, ends)) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("the end was not reached in 60 s");
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                    if (record.offset() < ends.get(partition)) list.add(toJson(record));
                }
            }
        }
        return list;
    }

    private static boolean hasReached(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends) {
        return ends.entrySet().stream().allMatch(entry -> consumer.position(entry.getKey()) >= entry.getValue());
    }

    private static ObjectNode toJson(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = JSON.createObjectNode();
        node.put("partition", record.partition());
        node.put("offset", record.offset());
        node.put("timestamp", record.timestamp());
        node.put("key", record.key());
        node.put("value", record.value());
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers()) headers.addArray().add(header.key()).add(header.value());
        return node;
    }

    private JsonNode produce(JsonNode request) throws Exception {
        JsonNode transaction = request.get("transaction");
        if (!transaction.isNull()) return produceIn(transaction, request);
        try (KafkaProducer<byte[], byte[]> producer = producer(request, null)) {
            return send(producer, request);
        }
    }

    /** In a transaction that is begun where none is open, and ended as asked, or left open. */
    private JsonNode produceIn(JsonNode transaction, JsonNode request) throws Exception {
        String id = transaction.get("id").asText();
        Transactional entry = transactional.computeIfAbsent(id, key -> {
            KafkaProducer<byte[], byte[]> producer = producer(request, key);
            producer.initTransactions();
            return new Transactional(producer);
        });
        synchronized (entry) {
            if (!entry.isOpen) entry.producer.beginTransaction();
            entry.isOpen = true;
            JsonNode sent = send(entry.producer, request);
            String end = transaction.get("end").asText();
            if (end.equals("open")) return sent;
            if (end.equals("commit")) entry.producer.commitTransaction();
            else entry.producer.abortTransaction();
            entry.isOpen = false;
            transactional.remove(id);
            entry.producer.close();
            return sent;
        }
    }

    private JsonNode send(KafkaProducer<byte[], byte[]> producer, JsonNode request) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode record : request.get("records")) sent.add(producer.send(toRecord(request.get("topic").asText(), record)));
        producer.flush();
        ArrayNode list = JSON.createArrayNode();
        for (Future<RecordMetadata> future : sent) {
            RecordMetadata place = future.get();
            list.addObject().put("partition", place.partition()).put("offset", place.offset());
        }
        return list;
    }

    private static ProducerRecord<byte[], byte[]> toRecord(String topic, JsonNode node) throws IOException {
        Integer partition = node.hasNonNull("partition") ? node.get("partition").asInt() : null;
        Long timestamp = node.hasNonNull("timestamp") ? node.get("timestamp").asLong() : null;
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, partition, timestamp, bytes(node.get("key")), bytes(node.get("value")));
        for (JsonNode header : node.get("headers")) record.headers().add(header.get(0).asText(), bytes(header.get(1)));
        return record;
    }

    private static byte[] bytes(JsonNode node) throws IOException {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode request, String transactionalId) {
        Properties settings = settings();
        settings.put("acks", "all");
        settings.put("compression.type", request.get("codec").asText());
        settings.put("linger.ms", "5");
        if (transactionalId != null) settings.put("transactional.id", transactionalId);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.putAll(common);
        return settings;
    }
}
