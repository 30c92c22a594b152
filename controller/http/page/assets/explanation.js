// What is wrong with one thing, and why: a dialog that opens on every element with `data-explain`.

import { ask } from "./api.js";
import { h, show, time } from "./dom.js";
import { moment } from "./moment.js";
import { remedyList, subject, symptomList } from "./verdict.js";
import { CAUSES, PROGRESS, ROLES } from "./words.js";

/** Partitions that are named of each thing that is wrong. */
const NAMED = 12;
const PREFIX = "#explain?";

const dialog = document.getElementById("explanation");
const title = document.getElementById("explanation-title");
const body = document.getElementById("explanation-body");
let asking = null;

/** Explain whatever is clicked that can be explained, what the form names, and what the address does. */
export function startExplanations() {
  document.addEventListener("click", (event) => {
    const asked = event.target.closest?.("[data-explain]");
    if (asked) open(asked.dataset.explain);
    else if (event.target === dialog) dialog.close(); // beside it
  });
  document.getElementById("explanation-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    asking?.abort();
    if (location.hash.startsWith(PREFIX)) history.replaceState(null, "", location.pathname + location.search);
  });
  document.getElementById("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    open(new URLSearchParams([...new FormData(event.target)].filter(([, value]) => value !== "")).toString());
  });
  addEventListener("hashchange", follow);
  follow();
}

/** In the address, so that it can be shown to somebody else, and left by going back. */
function open(query) {
  if (location.hash === PREFIX + query) follow();
  else location.hash = PREFIX + query;
}

function follow() {
  if (location.hash.startsWith(PREFIX)) explain(new URLSearchParams(location.hash.slice(PREFIX.length)));
  else if (dialog.open) dialog.close();
}

async function explain(query) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  title.textContent = nameOf(query);
  show(body, h("p", { class: "waiting" }, "Asking the controller …"));
  if (!dialog.open) dialog.showModal();
  title.focus();
  try {
    const found = await ask("/v1/answers/explain", [...query, ["limit", NAMED]], signal);
    show(body, explained(found));
  } catch (error) {
    if (!signal.aborted) show(body, h("p", { class: "notice" }, error.message));
  }
}

function nameOf(query) {
  const topic = query.get("topic");
  if (topic !== null) return query.has("partition") ? `Partition ${topic}-${query.get("partition")}` : `Topic ${topic}`;
  if (query.has("broker")) return `Broker ${query.get("broker")}`;
  if (query.has("controller")) return `Controller ${query.get("controller")}`;
  return "All partitions";
}

function explained(found) {
  const isWell = !found.symptoms.length && !found.controller;
  const state = moment() === null ? "" : " shown";
  return [
    found.controller && controllerPart(found.controller),
    isWell && h("p", { class: "empty" }, found.partitions ? "Nothing is wrong with its partitions." : "There is no partition to ask about."),
    found.symptoms.length > 0 && symptomList(found),
    found.reassignment && reassignmentPart(found.reassignment),
    found.remedies.length > 0 && [h("h3", {}, "What to do, in this order"), remedyList(found.remedies)],
    h("p", { class: "quiet small" }, `State${state} at offset ${found.state_offset}${found.state_time_ms > 0 ? `, of ${time(found.state_time_ms)}` : ""}`),
  ];
}

function controllerPart(controller) {
  const { voter, quorum } = controller;
  if (!voter || !quorum) return h("p", {}, "It does not belong to the quorum: nothing waits for it.");
  return [
    h("p", {}, h("span", { class: `badge ${ROLES[voter.role][1]}` }, ROLES[voter.role][0])),
    controller.if_lost.length
      ? h("ul", { class: "causes" }, controller.if_lost.map((reason) => h("li", {}, `Without it: ${reason.message}`)))
      : h("p", {}, `Without it ${quorum.left.length} of ${quorum.voters} voters would be left, ${quorum.majority} are needed: ${quorum.may_fail_then} more may fail.`),
    quorum.moves_leadership && h("p", {}, "It is active: another one would be elected."),
  ];
}

function reassignmentPart(moving) {
  const rows = moving.replicas.map((replica) =>
    h(
      "li",
      {},
      subject(`broker=${replica.broker}`, `broker ${replica.broker}`),
      replica.is_added && " (added)",
      replica.cause === null ? " is in sync" : ` ${CAUSES[replica.cause]}${replica.is_awaited ? ", and the reassignment waits for it" : ""}`,
    ),
  );
  return [
    h("h3", {}, `The reassignment ${PROGRESS[moving.progress]}`),
    h("p", {}, `From brokers ${moving.before.join(", ")} to ${moving.target.join(", ")}${moving.leader === null ? "; it has no leader to copy from" : ""}.`),
    h("ul", { class: "causes" }, rows),
  ];
}
