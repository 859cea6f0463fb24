/**
 * The watermark of an operator with several input channels.
 *
 * G1 It is the least watermark of the channels that are neither idle nor ended; it never falls.
 * G2 A channel group that has not opened yet holds it at -Infinity; one that opened without channels does not.
 * G3 While all channels are idle or have ended it stays where it is: others may open. Only the end of the input makes it Infinity.
 *    When all have ended the operator itself is not idle: what it still holds comes at the end, and must not be late then.
 * G4 A record or watermark wakes an idle channel. That alone does not raise the watermark, what comes next does: the channels of
 *    one place wake together, and none of them may run ahead before all have.
 * G5 A restored watermark is a floor, also while groups have not opened: what it made due has happened. Channels begin anew.
 *
 * @module
 */
import type { Channel, Marker, Watermark } from "../record.ts";

interface ChannelState {
  time: Watermark;
  idle: boolean;
}

/** Keeps the watermark of each input channel and their minimum. */
export class WatermarkGate {
  /** The operator's watermark. */
  current: Watermark = -Infinity;
  /** Whether nothing will come for now: every channel that has not ended is idle, or there is none yet. */
  idle = false;
  readonly #channels = new Map<Channel, ChannelState>();
  /** Those that have not ended. */
  readonly #open = new Set<ChannelState>();
  readonly #waiting: Set<number>;
  /** A channel has woken since the minimum was last taken. */
  #hasWoken = false;
  // The channel looked up last: nearly always the one asked for next.
  #lastChannel: Channel | undefined;
  #last: ChannelState | undefined;

  /** @param groups Channel groups that will open. */
  constructor(groups: readonly number[]) {
    this.#waiting = new Set(groups);
  }

  /** The watermark had reached `watermark` at the checkpoint the run goes on from. */
  restore(watermark: Watermark): void {
    if (watermark > this.current) this.current = watermark;
  }

  /** Takes over what a marker says. Whether the watermark rose. */
  marker(marker: Marker): boolean {
    switch (marker.kind) {
      case "open":
        this.#waiting.delete(marker.group);
        for (const channel of marker.channels) this.#state(channel);
        return this.#update();
      case "watermark":
        return this.advance(marker.channel, marker.time);
      case "idle": {
        const state = this.#state(marker.channel);
        if (state.idle) return false;
        state.idle = true;
        return this.#update();
      }
      case "ended": {
        this.#open.delete(this.#state(marker.channel));
        return this.#update();
      }
      case "end":
        if (!marker.complete) return false;
        this.#waiting.clear();
        this.idle = false;
        if (this.current === Infinity) return false;
        this.current = Infinity;
        return true;
    }
  }

  /** The channel has reached `time`. Whether the operator's watermark rose. Called for every record: mostly two compares. */
  advance(channel: Channel, time: Watermark): boolean {
    let state = this.#last;
    if (channel !== this.#lastChannel) {
      state = this.#last = this.#state(channel);
      this.#lastChannel = channel;
    }
    const before = state!.time;
    if (time > before) state!.time = time;
    else if (state!.idle) return this.#wake(state!);
    else if (!this.#hasWoken) return false;
    if (before > this.current && !state!.idle && !this.#hasWoken) return false; // another channel holds it
    state!.idle = false;
    return this.#update();
  }

  /** A record of the channel has come: it is not idle any more, whatever its watermark. */
  wake(channel: Channel): void {
    const state = this.#state(channel);
    if (state.idle) this.#wake(state);
  }

  #wake(state: ChannelState): false {
    state.idle = false;
    if (this.#open.has(state)) this.idle = false;
    this.#hasWoken = true;
    return false;
  }

  #state(channel: Channel): ChannelState {
    let state = this.#channels.get(channel);
    if (state === undefined) {
      state = { time: -Infinity, idle: false };
      this.#channels.set(channel, state);
      this.#open.add(state);
    }
    return state;
  }

  #update(): boolean {
    if (this.#waiting.size > 0) return false;
    this.#hasWoken = false;
    let least = Infinity, active = false;
    for (const state of this.#open) {
      if (state.idle) continue;
      active = true;
      if (state.time < least) least = state.time;
    }
    this.idle = !active && (this.#open.size > 0 || this.#channels.size === 0);
    if (!active || least <= this.current) return false;
    this.current = least;
    return true;
  }
}
