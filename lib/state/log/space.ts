/**
 * A named state of an operator: what its values look like over the versions of the program, and whose time they expire by.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { KeyIdentity } from "../../key.ts";
import { ByteReader } from "./bytes.ts";
import { decodeValue } from "./codec.ts";
import { CHUNKED, type EntryHead, OWN_KEY } from "./entry.ts";
import type { EntryPage } from "./page.ts";
import type { Run } from "./run.ts";

/** Settings of a space. */
export interface SpaceOptions {
  /** Version of what the values look like, 0 … 255. Default 0. */
  readonly version?: number;
  /** Brings a value of an older version to the current one. Without it, such a value is an error. */
  readonly migrate?: (value: unknown, version: number) => unknown;
  /** Whether keys leave memory and are fetched again, in a store that pages where it is asked for. Default false. */
  readonly paged?: boolean;
  /** Now, for values that expire. Without it none does. Must not go back. */
  readonly time?: () => number;
  /**
   * Version and `migrate` are said later, by {@link Space.declare}: until then a value of another version than 0 is read as a
   * {@link StoredValue}. Default false.
   */
  readonly late?: boolean;
}

/** A value as it was stored, in a space that does not know its own version yet. */
export class StoredValue {
  constructor(readonly value: unknown, readonly version: number) {}
}

/** An entry of a run, read. */
export interface StoredEntry<V = unknown> {
  readonly identity: KeyIdentity;
  readonly key: unknown;
  readonly value: V;
  /** Infinity: never. */
  readonly expires: number;
}

/** A space of one operator. */
export class Space {
  readonly name: string;
  /** Whether its keys may leave memory. */
  readonly paged: boolean;
  readonly time: (() => number) | undefined;
  #version = 0;
  #migrate: ((value: unknown, version: number) => unknown) | undefined;
  /** Whether its version is not known yet. */
  #isLate: boolean;
  readonly #operator: string;

  /** @param operator Names its owner, for errors. */
  constructor(operator: string, name: string, options: SpaceOptions, paged = true) {
    this.#operator = operator;
    this.name = name;
    this.paged = paged;
    this.time = options.time;
    this.#isLate = options.late ?? false;
    this.#setVersion(options);
  }

  /** Version of what its values look like. */
  get version(): number {
    return this.#version;
  }

  /**
   * Says what was not known when it was made. Values that have been read are brought to the version by {@link Space.upgraded}.
   *
   * @throws {MailerError} `invalid_version`
   */
  declare(options: Pick<SpaceOptions, "version" | "migrate">): void {
    this.#setVersion(options);
    this.#isLate = false;
  }

  #setVersion({ version = 0, migrate }: SpaceOptions): void {
    if (!(Number.isInteger(version) && version >= 0 && version <= 255)) {
      throw new MailerError(
        "invalid_version",
        `${this.label}: a version is a whole number from 0 to 255, not ${version}`,
      );
    }
    this.#version = version;
    this.#migrate = migrate;
  }

  /** How errors call it. */
  get label(): string {
    return `operator "${this.#operator}", state "${this.name}"`;
  }

  /** Reads an entry that is no tombstone. */
  read(head: EntryHead, page: EntryPage, index: number, run: Run): StoredEntry | Promise<StoredEntry> {
    const { flags, version, expires, identityFrom, identityTo } = head;
    const reader = new ByteReader(page.bytes, identityFrom);
    const identity = decodeValue(reader) as KeyIdentity;
    reader.at = identityTo;
    if ((flags & CHUNKED) === 0) return this.#entry(identity, flags, version, expires, reader);
    if (reader.at >= page.end(index)) throw new RangeError("an entry is cut short");
    const first = reader.varint(), length = reader.varint();
    return run.chunk(first, length).then((payload) =>
      this.#entry(identity, flags, version, expires, new ByteReader(payload))
    );
  }

  #entry(
    identity: KeyIdentity,
    flags: number,
    version: number,
    expires: number,
    payload: ByteReader,
  ): StoredEntry {
    const key = (flags & OWN_KEY) === 0 ? identity : decodeValue(payload);
    const value = decodeValue(payload);
    return {
      identity,
      key,
      value: this.#isLate ? asStored(value, version) : this.#current(value, version),
      expires,
    };
  }

  /**
   * A value that was read before the version was known, in the current version.
   *
   * @throws {MailerError} `state_version` where it is of another one, and there is no way from there.
   */
  upgraded(value: unknown): unknown {
    return value instanceof StoredValue ? this.#current(value.value, value.version) : this.#current(value, 0);
  }

  #current(value: unknown, version: number): unknown {
    if (version === this.#version) return value;
    if (this.#migrate !== undefined && version < this.#version) return this.#migrate(value, version);
    throw new MailerError(
      "state_version",
      `${this.label} was stored in version ${version}, the program has version ${this.#version}`,
      {
        hint: version > this.#version
          ? "run the newer program, or go back to an older checkpoint"
          : "give the state a migrate function",
      },
    );
  }
}

function asStored(value: unknown, version: number): unknown {
  return version === 0 ? value : new StoredValue(value, version);
}
