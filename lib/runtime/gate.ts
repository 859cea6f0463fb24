/**
 * The watermark of an operator with several input channels.
 *
 * G1 It is the least watermark of the channels that are neither idle nor ended; it never falls.
 * G2 A channel group that has not opened yet holds it at -Infinity; one that opened without channels does not.
 * G3 While all channels are idle or have ended it stays where it is: others may open. Only the end of the input makes it Infinity.
 * G4 A record or watermark wakes an idle channel.
 *
 * @module
 */
import type { Channel, Marker, Watermark } from "../record.ts";

interface ChannelState {
  readonly group: number;
  time: Watermark;
  idle: boolean;
  ended: boolean;
}

/** Keeps the watermark of each input channel and their minimum. */
export class WatermarkGate {
  /** The operator's watermark. */
  current: Watermark = -Infinity;
  /** Whether nothing holds the watermark for now: every channel is idle or has ended. */
  idle = false;
  readonly #channels = new Map<Channel, ChannelState>();
  readonly #waiting: Set<number>;
  // The channel looked up last: nearly always the one asked for next.
  #lastChannel: Channel | undefined;
  #last: ChannelState | undefined;

  /** @param groups Channel groups that will open. */
  constructor(groups: readonly number[]) {
    this.#waiting = new Set(groups);
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
        const state = this.#state(marker.channel);
        state.ended = true;
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
    if (time <= state!.time && !state!.idle) return false;
    const before = state!.time;
    if (time > before) state!.time = time;
    if (state!.idle) state!.idle = false;
    else if (before > this.current) return false; // another channel holds it
    return this.#update();
  }

  /** A record of the channel has come: it is not idle any more, whatever its watermark. */
  wake(channel: Channel): void {
    const state = this.#state(channel);
    if (!state.idle) return;
    state.idle = false;
    this.#update();
  }

  #state(channel: Channel): ChannelState {
    let state = this.#channels.get(channel);
    if (state === undefined) {
      state = { group: channel.group, time: -Infinity, idle: false, ended: false };
      this.#channels.set(channel, state);
    }
    return state;
  }

  #update(): boolean {
    if (this.#waiting.size > 0) return false;
    let least = Infinity, active = false;
    for (const state of this.#channels.values()) {
      if (state.idle || state.ended) continue;
      active = true;
      if (state.time < least) least = state.time;
    }
    this.idle = !active;
    if (this.idle) return false;
    if (least <= this.current) return false;
    this.current = least;
    return true;
  }
}
