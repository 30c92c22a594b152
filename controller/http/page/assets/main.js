// The page: asks for the cluster's status again and again, and draws what it says.

import { ask, Silence } from "./api.js";
import { showControllers } from "./controllers.js";
import { h, number, show, time } from "./dom.js";
import { startExplanations } from "./explanation.js";
import { Following } from "./live.js";
import { moment, onMoment } from "./moment.js";
import { showPartitions } from "./partitions.js";
import { showRacks, startRacks } from "./racks.js";
import { askWho, letIn, startSignOut } from "./sign_in.js";
import { keepTimeline, startTimeline } from "./timeline.js";
import { showActions, showVerdict } from "./verdict.js";
import { VERDICTS } from "./words.js";

const notice = document.getElementById("notice");
const following = new Following(refresh);
/** Stops the question that is under way: another moment is to be shown, or the page is hidden. */
let asking = null;
/** When the status that is shown came: milliseconds since 1970; null: none has come. */
let cameMs = null;
/** A status that takes longer is missed, and what is shown is called old. */
const LATE_MS = 5000;
/** Of the past a controller that is silent is asked again after so long. */
const AGAIN_MS = 3000;
/** Controllers whose troubles are explained beside the partitions': a reader asks for others himself. */
const CONTROLLERS_EXPLAINED = 3;
/** The explanations that are shown, and what they were asked about ("": nothing): they are asked for when that has changed. */
let explanations = [];
let explainedFor = "";

async function refresh() {
  asking = new AbortController();
  const { signal } = asking;
  const late = setTimeout(() => tell(silence()), LATE_MS);
  try {
    const status = await ask("/v1/status", {}, signal).finally(() => clearTimeout(late));
    cameMs = Date.now();
    letIn();
    tell("");
    draw(status);
    keepTimeline();
    await explain(status, signal);
  } catch (error) {
    if (!signal.aborted) refused(error, signal);
  }
}

function refused(error, signal) {
  if (error.status === 401 || error.status === 403) {
    following.stop(); // whoever asks on and on with a wrong token is told to wait
    tell("");
    askWho(error.message, begin);
  } else if (error instanceof Silence) {
    tell(silence());
    // Of now the following asks again.
    if (moment() !== null) setTimeout(() => signal.aborted || begin(), AGAIN_MS);
  } else tell(error.message);
}

function silence() {
  const shown = cameMs === null ? "does not answer" : `has not answered since ${time(cameMs).slice(11)} UTC: what is shown is of then`;
  return `The controller ${shown}. It is asked again and again.`;
}

function begin() {
  asking?.abort();
  following.stop();
  // The past stays what it is, and nobody looks at a page that is hidden.
  if (moment() !== null) refresh();
  else if (!document.hidden) following.start();
}

function draw(status) {
  const isThen = moment() !== null;
  document.title = `${isThen ? "Then: " : ""}${VERDICTS[status.verdict][0]} · Quorate`;
  document.getElementById("actions-title").textContent = isThen ? "What there was to do" : "What to do";
  showFacts(status);
  showVerdict(status, explainedFor === keyOf(status) ? explanations : []);
  showRacks(status);
  showPartitions(status);
  showControllers(status);
}

function keyOf(status) {
  return JSON.stringify([moment(), status.reasons]);
}

async function explain(status, signal) {
  const questions = questionsOf(status);
  if (!questions.length) {
    explainedFor = "";
    showActions([], status.reasons.length ? "Look at the nodes that the reasons name." : "Nothing.");
    return;
  }
  if (keyOf(status) === explainedFor) return;
  if (explainedFor === "") showActions([], "Asking why …");
  try {
    explanations = await Promise.all(questions.map((question) => ask("/v1/answers/explain", { limit: 0, ...question }, signal)));
    explainedFor = keyOf(status);
    showVerdict(status, explanations);
    showActions(explanations, "Nothing that this controller knows of.");
  } catch (error) {
    if (signal.aborted) throw error;
    explainedFor = null; // it is asked for again, and what is said of it stays till then
    showActions([], `No explanation this time: ${error.message}`);
  }
}

/**
 * What to have explained: all partitions, and controllers one by one. It is in the order of the reasons, and so is what
 * to do: without a quorum no broker that is started can join.
 */
function questionsOf({ reasons, quorum }) {
  const asked = [...new Set(reasons.flatMap((reason) => (reason.partitions ? [null] : controllersOf(reason, quorum))))];
  const controllers = asked.filter((id) => id !== null).slice(0, CONTROLLERS_EXPLAINED);
  return asked.filter((id) => id === null || controllers.includes(id)).map((id) => (id === null ? {} : { controller: id }));
}

function controllersOf({ code, nodes }, quorum) {
  if (code === "NO_ACTIVE_CONTROLLER") return [quorum.observed_by];
  return code.startsWith("CONTROLLERS_") ? nodes : [];
}

function showFacts(status) {
  const { active_id: active, epoch, applied_offset: offset, observed_by: observer, is_past: isPast } = status.quorum;
  const facts = [["Cluster", status.cluster_id || "–"], ["Active controller", active ?? "none"], ["Epoch", number(epoch)], ["Offset", number(offset)]];
  show(document.getElementById("facts"), facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  const lacks = status.unprotected_by.map((one) => ({ tls: "no TLS", authorizer: "no authorizer" })[one]).join(", ");
  show(document.getElementById("source"), `${isPast ? "As the log tells it." : `As controller ${observer} sees it.`}${lacks && ` Insecure: ${lacks}.`}`);
  show(document.getElementById("live"), isPast ? (moment() === null ? "The end of the files" : "The past") : `${following.isStreaming ? "Live" : "Asked again and again"}, ${time(Date.now()).slice(11)}`);
  document.body.classList.toggle("past", isPast);
}

function tell(text) {
  notice.hidden = !text;
  document.body.classList.toggle("stale", Boolean(text));
  if (text && cameMs !== null) show(document.getElementById("live"), `Not live: of ${time(cameMs).slice(11)}`);
  show(notice, text);
}

startRacks();
startExplanations();
startTimeline();
startSignOut();
onMoment(begin);
document.addEventListener("visibilitychange", begin);
begin();
