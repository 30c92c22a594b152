// When to ask anew: at each event of the controller's stream, and where there is no stream, again and again.

import { open } from "./api.js";

/** Between two questions without a stream, and with one, for what makes no event: lags, and when who was heard of. */
const PAUSE_MS = 3000;
const PAUSE_WITH_STREAM_MS = 15_000;
/** Questions come no closer than this, however many events do. */
const CLOSEST_MS = 1000;
/** The controller says something each 10 s: a stream that is silent for longer is dead. */
const SILENCE_MS = 25_000;
const AGAIN_MS = 5000;

/** Calls a function whenever what it shows may have changed, until it is stopped. The function never throws. */
export class Following {
  #onChange;
  #timer = 0;
  #due = Infinity;
  #asked = 0;
  #isAsking = false;
  #isChanged = false;
  #stop = null;
  #isStreaming = false;

  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Whether a stream says when to ask. */
  get isStreaming() {
    return this.#isStreaming;
  }

  /** Begin, or begin anew: the first call comes at once. */
  start() {
    this.stop();
    this.#stop = new AbortController();
    this.#asked = 0;
    this.#changed();
    this.#stream(this.#stop.signal);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#due = Infinity;
    this.#stop?.abort();
    this.#stop = null;
    this.#isStreaming = false;
  }

  #changed() {
    this.#isChanged = true;
    this.#soon(this.#asked + CLOSEST_MS - performance.now());
  }

  /** Call after a pause, unless it is done earlier anyway. */
  #soon(pause) {
    const due = performance.now() + Math.max(0, pause);
    if (this.#isAsking || !this.#stop || due >= this.#due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => this.#call(), Math.max(0, pause));
  }

  async #call() {
    this.#due = Infinity;
    this.#isAsking = true;
    this.#isChanged = false;
    this.#asked = performance.now();
    await this.#onChange();
    this.#isAsking = false;
    if (this.#isChanged) this.#changed();
    else this.#soon(this.#isStreaming ? PAUSE_WITH_STREAM_MS : PAUSE_MS);
  }

  async #stream(signal) {
    while (!signal.aborted) {
      try {
        await this.#read(signal);
      } catch {
        // No place, no right, or no controller: whoever asks for the status is told which.
      }
      if (signal.aborted) return;
      this.#isStreaming = false;
      this.#soon(PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  async #read(signal) {
    const quiet = new AbortController();
    let guard = setTimeout(() => quiet.abort(), SILENCE_MS);
    try {
      const answer = await open("/v1/events", {}, AbortSignal.any([signal, quiet.signal]));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      this.#isStreaming = true;
      for (let rest = ""; ; ) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(guard);
        guard = setTimeout(() => quiet.abort(), SILENCE_MS);
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        if (blocks.some((block) => block.startsWith("event: changed"))) this.#changed();
      }
    } finally {
      clearTimeout(guard);
    }
  }
}
