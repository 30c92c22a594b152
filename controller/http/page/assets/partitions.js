// Partitions and replicas by state, and partitions by what is the matter with them.

import { counted, h, number, percent, show } from "./dom.js";

const PARTITION_STATES = [["OnlinePartition", "led", "good"], ["NewPartition", "new", "new"], ["OfflinePartition", "without a leader", "bad"]];
const REPLICA_STATES = [["OnlineReplica", "on a broker that runs", "good"], ["NewReplica", "being added", "new"], ["OfflineReplica", "on a broker or disk that is away", "bad"]];
const CONDITIONS = [
  ["offline", "without a leader", "bad"],
  ["under_min_isr", "under min.insync.replicas", "bad"],
  ["under_replicated", "under-replicated", "doubtful"],
  ["without_preferred_leader", "not led by the preferred replica", "calm"],
  ["reassigning", "being reassigned", "calm"],
];
const ELECTIONS = [
  ["unclean", "led by a replica that had not copied everything: what it had not copied is lost"],
  ["last_known", "led by their last leader after its crash: what it had not flushed is lost"],
];

/** Draw the partitions of a status. */
export function showPartitions(status) {
  const place = document.getElementById("partitions");
  const total = status.partitions.total;
  if (!total) {
    show(place, h("p", { class: "empty" }, "There is no partition yet."));
    return;
  }
  show(
    place,
    h(
      "div",
      {},
      h("p", { class: "figures" }, figure(total, "partition"), figure(status.topics, "topic")),
      stacked("Partitions by state", PARTITION_STATES, status.states.partitions),
      stacked("Replicas by state", REPLICA_STATES, status.states.replicas),
    ),
    conditions(status.partitions),
    ELECTIONS.filter(([name]) => status.elections[name]).map(([name, words]) => h("p", { class: "warning" }, `${counted(status.elections[name], "partition")} ${words}.`)),
  );
}

function figure(count, noun) {
  return h("span", { class: "figure" }, h("strong", {}, number(count)), ` ${noun}${count === 1 ? "" : "s"}`);
}

function stacked(title, states, counts) {
  const total = states.reduce((sum, [name]) => sum + counts[name], 0);
  const shown = states.filter(([name]) => counts[name]);
  const said = shown.map(([name, words]) => `${number(counts[name])} ${words}`).join(", ");
  return h(
    "figure",
    {},
    h("figcaption", {}, title),
    h("div", { class: "stack", role: "img", "aria-label": `${title}: ${said}` }, shown.map(([name, , kind]) => h("span", { class: `fill ${kind}`, style: { "flex-grow": String(counts[name] / total) } }))),
    h("ul", { class: "keys" }, shown.map(([name, words, kind]) => h("li", {}, h("span", { class: `swatch fill ${kind}`, "aria-hidden": "true" }), `${number(counts[name])} ${words}`))),
  );
}

function conditions(counts) {
  const rows = CONDITIONS.map(([name, words, kind]) => {
    const share = counts[name] / counts.total;
    const bar = h("span", { class: `fill ${counts[name] ? kind : "none"}`, style: { width: `${share * 100}%` } });
    return h(
      "tr",
      { class: counts[name] ? null : "none" },
      h("th", { scope: "row" }, words),
      h("td", { class: "number" }, number(counts[name])),
      h("td", { class: "bar" }, h("span", { class: "track", "aria-hidden": "true" }, bar)),
      h("td", { class: "number quiet" }, percent(share)),
    );
  });
  return h("table", { class: "conditions" }, h("caption", {}, "One may be several of these"), h("tbody", {}, rows));
}
