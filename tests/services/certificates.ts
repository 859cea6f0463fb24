/**
 * Certificates for tests, made by openssl: an authority, a server for `localhost` and `127.0.0.1`, a client; and a stranger,
 * whom another authority vouches for.
 *
 * @module
 */
import { run, whereIs } from "./process.ts";
import { ServiceUnavailable } from "./unavailable.ts";

/** A certificate and its key, PEM. */
export interface Certificate {
  readonly certificate: string;
  /** PKCS#8. */
  readonly key: string;
}

/** What a test needs to speak TLS to a server of its own. */
export interface Certificates {
  /** The authority's certificate, PEM: what a client trusts. */
  readonly authority: string;
  readonly client: Certificate;
  /** Of an authority that the server does not know. */
  readonly stranger: Certificate;
  /** PEM files: key, certificate and authority of the server in one; the authority. */
  readonly files: { readonly server: string; readonly authority: string };
}

/** What is missing, in a sentence; undefined if nothing. */
export function missingCertificates(): string | undefined {
  return whereIs("openssl") === undefined
    ? "certificates need openssl on the PATH: run tests/services/install.sh"
    : undefined;
}

/** Makes them in a folder that is there. */
export async function certificates(folder: string): Promise<Certificates> {
  const missing = missingCertificates();
  if (missing !== undefined) throw new ServiceUnavailable(missing);
  const read = (name: string) => Deno.readTextFile(`${folder}/${name}`);
  await authority(folder, "authority");
  await authority(folder, "other");
  await signed(folder, "server", "authority", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  await signed(folder, "client", "authority", "extendedKeyUsage=clientAuth\n");
  await signed(folder, "stranger", "other", "extendedKeyUsage=clientAuth\n");
  const authorityText = await read("authority.pem");
  const all = `${await read("server.key")}${await read("server.pem")}${authorityText}`;
  await Deno.writeTextFile(`${folder}/server-all.pem`, all);
  return {
    authority: authorityText,
    client: { certificate: await read("client.pem"), key: await read("client.key") },
    stranger: { certificate: await read("stranger.pem"), key: await read("stranger.key") },
    files: { server: `${folder}/server-all.pem`, authority: `${folder}/authority.pem` },
  };
}

const DAYS = ["-days", "2"];

async function newKey(folder: string, name: string): Promise<void> {
  const curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
  await openssl(folder, "genpkey", ...curve, "-out", `${name}.key`); // PKCS#8, as Kafka wants it
}

async function authority(folder: string, name: string): Promise<void> {
  await newKey(folder, name);
  await openssl(
    folder,
    "req",
    "-x509",
    "-new",
    "-key",
    `${name}.key`,
    "-subj",
    `/CN=${name}`,
    ...DAYS,
    "-out",
    `${name}.pem`,
  );
}

async function signed(folder: string, name: string, by: string, extensions: string): Promise<void> {
  await newKey(folder, name);
  await Deno.writeTextFile(`${folder}/${name}.ext`, extensions);
  await openssl(folder, "req", "-new", "-key", `${name}.key`, "-subj", `/CN=${name}`, "-out", `${name}.csr`);
  const issuer = ["-CA", `${by}.pem`, "-CAkey", `${by}.key`, "-CAcreateserial"];
  await openssl(
    folder,
    "x509",
    "-req",
    "-in",
    `${name}.csr`,
    ...issuer,
    ...DAYS,
    "-extfile",
    `${name}.ext`,
    "-out",
    `${name}.pem`,
  );
}

async function openssl(cwd: string, ...args: readonly string[]): Promise<void> {
  const { success, output } = await run(["openssl", ...args], { cwd });
  if (!success) throw new ServiceUnavailable(`openssl ${args[0]} failed:`, output);
}
