// The controllers of the quorum, as the one that answers sees them.

import { h, number, show, span } from "./dom.js";
import { ROLES } from "./words.js";

/** Draw the controllers of a status. */
export function showControllers(status) {
  const { voters, observed_by: observer, is_past: isPast } = status.quorum;
  show(
    document.getElementById("controllers"),
    isPast && h("p", { class: "quiet" }, "Who led is in the log; how the others were is not."),
    h("ul", { class: "voters" }, voters.map((voter) => voterItem(voter, observer, isPast))),
  );
}

function voterItem(voter, observer, isPast) {
  const [role, kind] = ROLES[voter.role];
  const facts = [
    voter.lag_records !== null && ["behind", voter.lag_records ? `${number(voter.lag_records)} records` : "nothing"],
    voter.last_contact_ms !== null && voter.node_id !== observer && ["heard of", `${span(voter.last_contact_ms)} ago`],
  ].filter(Boolean);
  const isElsewhere = voter.node_id !== observer && /^https?:\/\//.test(voter.http);
  return h(
    "li",
    { "data-key": voter.node_id, class: voter.role },
    h(
      "p",
      { class: "voter-name" },
      isPast
        ? h("strong", {}, `controller ${voter.node_id}`)
        : h("button", { type: "button", class: "subject", "data-explain": `controller=${voter.node_id}` }, `controller ${voter.node_id}`),
      isElsewhere && h("a", { class: "small", href: `${voter.http}/`, "aria-label": `its page: controller ${voter.node_id}` }, "its page"),
      h("span", { class: `badge ${kind}` }, role),
    ),
    facts.length > 0 && h("dl", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
  );
}
