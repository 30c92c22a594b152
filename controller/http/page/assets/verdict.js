// The verdict with its reasons, and beside it what explains them and what to do.

import { counted, h, icon, number, percent, show, time } from "./dom.js";
import { moment } from "./moment.js";
import { CAUSES, RISKS, VERDICTS } from "./words.js";

/** Brokers that are named of a reason: the explanation has all of them. */
const CAUSES_SHOWN = 3;

/** The verdict and its reasons, each with its causes as far as explanations tell them. */
export function showVerdict(status, explanations) {
  const symptoms = new Map(explanations.flatMap((one) => one.symptoms).map((symptom) => [symptom.code, symptom]));
  const [word, kind] = VERDICTS[status.verdict];
  const reasons = status.reasons.length;
  const why = reasons ? counted(reasons, "reason") : `No broker, partition or controller ${moment() === null ? "needs" : "needed"} anybody.`;
  show(
    document.getElementById("verdict"),
    h("p", { class: `headline ${kind}` }, icon(kind), h("strong", {}, word)),
    h("p", { class: "sentence" }, why),
  );
  show(document.getElementById("reasons"), reasons ? h("ul", { class: "reasons" }, status.reasons.map((reason) => reasonItem(reason, symptoms.get(reason.code)))) : null);
}

function reasonItem(reason, symptom) {
  const kind = reason.code.startsWith("CONTROLLER") ? "controller" : "broker";
  const nodes = reason.nodes.map((id) => subject(`${kind}=${id}`, `${kind} ${id}`));
  return h(
    "li",
    { "data-key": reason.code + reason.nodes },
    h("span", { class: "message" }, reason.message),
    nodes.length > 0 && h("span", { class: "subjects" }, nodes.slice(0, 12), nodes.length > 12 && ` and ${nodes.length - 12} more`),
    reason.partitions > 0 && h("span", { class: "subjects" }, subject("", "why")),
    symptom?.causes.length > 0 && h(
      "ul",
      { class: "causes" },
      symptom.causes.slice(0, CAUSES_SHOWN).map(causeItem),
      symptom.causes.length > CAUSES_SHOWN && h("li", {}, `and ${counted(symptom.causes.length - CAUSES_SHOWN, "broker")} more`),
    ),
  );
}

/** A button that explains something: `query` as `/v1/answers/explain` takes it. */
export function subject(query, text) {
  const label = query ? null : `${text}: explain all partitions`;
  return h("button", { type: "button", class: "subject", "data-explain": query, "aria-label": label }, text);
}

/** What is to be done, by explanations; where they know nothing `why` is said instead. */
export function showActions(explanations, why) {
  const found = new Map(explanations.flatMap((one) => one.remedies).map((remedy) => [remedy.message, remedy]));
  show(document.getElementById("actions"), found.size ? remedyList([...found.values()]) : h("p", { class: "empty" }, why));
}

/** Remedies in their order, each with what it brings and risks, and the command that does it. */
export function remedyList(remedies) {
  return h("ol", { class: "remedies" }, remedies.map(remedyItem));
}

function remedyItem(remedy) {
  const [risk, kind] = RISKS[remedy.risk];
  return h(
    "li",
    {},
    h("p", {}, remedy.message),
    h(
      "p",
      { class: "effects" },
      // Of what is done to controllers alone no partition's election says what it risks.
      (remedy.led_again > 0 || remedy.risk !== "NONE") && h("span", { class: `badge ${kind}` }, risk),
      remedy.replicas > 0 && h("span", {}, `${counted(remedy.replicas, "replica")} in sync again once caught up`),
    ),
    remedy.command && h("pre", {}, h("code", {}, remedy.command)),
  );
}

/** What is wrong, each with the brokers that explain it and the first partitions. */
export function symptomList(explanation) {
  return h("ul", { class: "symptoms" }, explanation.symptoms.map((symptom) => symptomItem(symptom, explanation.partitions)));
}

function symptomItem(symptom, total) {
  const named = symptom.named.flatMap((topic) => topic.partitions.map((one) => [topic.topic, one]));
  const more = symptom.partitions - named.length;
  return h(
    "li",
    {},
    h("h3", {}, symptom.message),
    symptom.partitions > 0 && h("p", { class: "quiet" }, `${counted(symptom.topics, "topic")}, ${percent(symptom.share)} of ${counted(total, "partition")}`),
    symptom.causes.length > 0 && h("ul", { class: "causes" }, symptom.causes.map(causeItem)),
    named.length > 0 && h(
      "p",
      { class: "subjects" },
      named.map(([topic, partition]) => subject(new URLSearchParams({ topic, partition }).toString(), `${topic}-${partition}`)),
      more > 0 && h("span", { class: "quiet" }, `and ${number(more)} more`),
    ),
  );
}

function causeItem(cause) {
  const since = cause.since_ms === null ? "" : ` since ${time(cause.since_ms)}`;
  return h(
    "li",
    {},
    "because ",
    subject(`broker=${cause.broker}`, `broker ${cause.broker}`),
    ` ${CAUSES[cause.code]}${since}: `,
    h("span", { class: "number" }, counted(cause.partitions, "partition")),
  );
}
