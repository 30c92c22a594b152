// Questions to the controller that served this page.

import { authorization } from "./credentials.js";
import { moment } from "./moment.js";

/** A controller that does not answer within this is taken for gone. */
const PATIENCE_MS = 15_000;

/** The controller refused: `status` is HTTP's, `error` Kafka's name of it. */
export class Refusal extends Error {
  constructor(status, reply) {
    super(reply?.message ?? `the controller answered ${status}`);
    this.status = status;
    this.error = reply?.error ?? "";
  }
}

/** The controller does not answer. */
export class Silence extends Error {}

/**
 * The reply to `GET path`, of the moment that the page shows.
 *
 * Throws `Refusal` or `Silence`; an `AbortError` where `signal` says that nobody wants it any more.
 */
export function ask(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters);
  if (moment() !== null) query.set("at", moment());
  return askOfNow(path, query, signal);
}

/** The same, whatever moment the page shows. */
export async function askOfNow(path, parameters, signal = undefined) {
  const query = new URLSearchParams(parameters);
  const limit = AbortSignal.timeout(PATIENCE_MS);
  try {
    return await (await open(path, query, signal ? AbortSignal.any([signal, limit]) : limit)).json();
  } catch (error) {
    if (error instanceof Refusal || signal?.aborted) throw error;
    throw new Silence("the controller does not answer");
  }
}

/** The answer itself, once it has begun. Throws `Refusal`, and what `fetch` throws. */
export async function open(path, query, signal) {
  const text = new URLSearchParams(query).toString();
  const answer = await fetch(text ? `${path}?${text}` : path, {
    headers: { "X-Quorate-Timeout-Ms": String(PATIENCE_MS), ...authorization() },
    cache: "no-store",
    signal,
  });
  if (answer.ok) return answer;
  throw new Refusal(answer.status, await answer.json().catch(() => null));
}
