/**
 * One file that lines are appended to.
 *
 * A1 What a failed write left behind is cut off before the next one: a line is never written half.
 *
 * @module
 */
import { fileError } from "./byte_input.ts";

/** See the head of this file. */
export class PartFile {
  readonly path: string;
  readonly #file: Deno.FsFile;
  /** Whether it can be cut and made durable: a pipe or a device cannot. */
  readonly #isRegular: boolean;
  #length: number;
  #isTorn = false;

  private constructor(path: string, file: Deno.FsFile, isRegular: boolean, length: number) {
    this.path = path;
    this.#file = file;
    this.#isRegular = isRegular;
    this.#length = length;
  }

  /**
   * Opens a file, its folders made where they are missing.
   *
   * @param mode `keep` goes on behind what is in it (on a new line), `empty` empties it.
   */
  static async open(path: string, mode: "keep" | "empty"): Promise<PartFile> {
    let file: Deno.FsFile | undefined;
    try {
      const slash = path.lastIndexOf("/");
      if (slash > 0) await Deno.mkdir(path.slice(0, slash), { recursive: true });
      file = await Deno.open(path, {
        read: mode === "keep",
        write: true,
        create: true,
        truncate: mode === "empty",
      });
      const { isFile, size } = await file.stat();
      const part = new PartFile(path, file, isFile, size);
      if (isFile && size > 0) await part.#toNewLine();
      return part;
    } catch (error) {
      file?.close();
      throw fileError(path, "opening it for writing", error);
    }
  }

  /** Bytes in it. */
  get length(): number {
    return this.#length;
  }

  /** Appends all of the bytes. After a failure the same bytes can be written again. */
  async write(bytes: Uint8Array): Promise<void> {
    try {
      if (this.#isTorn) await this.#cut();
      this.#isTorn = this.#isRegular;
      for (let at = 0; at < bytes.length;) at += await this.#file.write(bytes.subarray(at));
      this.#isTorn = false;
      this.#length += bytes.length;
    } catch (error) {
      throw fileError(this.path, "writing", error);
    }
  }

  /** Makes what was written safe from a crash of the machine. */
  async sync(): Promise<void> {
    if (!this.#isRegular) return;
    try {
      await this.#file.syncData();
    } catch (error) {
      throw fileError(this.path, "writing to disk", error);
    }
  }

  close(): void {
    this.#file.close();
  }

  async #cut(): Promise<void> {
    await this.#file.truncate(this.#length);
    await this.#file.seek(this.#length, Deno.SeekMode.Start);
  }

  async #toNewLine(): Promise<void> {
    const last = new Uint8Array(1);
    await this.#file.seek(-1, Deno.SeekMode.End);
    await this.#file.read(last);
    await this.#file.seek(0, Deno.SeekMode.End);
    if (last[0] !== 10) await this.write(Uint8Array.of(10));
  }
}
