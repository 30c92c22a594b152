// The words for what the controllers' answers call by codes.

export const VERDICTS = {
  healthy: ["Healthy", "good"],
  degraded: ["Degraded", "doubtful"],
  critical: ["Critical", "bad"],
  "no-quorum": ["No quorum", "lost"],
};

export const CAUSES = {
  BROKER_DOWN: "is down",
  BROKER_LEAVING: "is being shut down",
  BROKER_UNKNOWN: "is not registered",
  DIRECTORY_OFFLINE: "runs without their log directory",
  NOT_CAUGHT_UP: "has not caught up",
};

export const RISKS = {
  NONE: ["nothing is lost", "good"],
  LAST_KNOWN_LEADER: ["may lose what the last leader had not flushed", "doubtful"],
  UNCLEAN: ["loses what the new leader had not copied", "bad"],
};

export const BROKER_STATES = { active: "", fenced: "fenced", "controlled-shutdown": "shutting down" };

export const ROLES = {
  active: ["active", "good"],
  standby: ["stands by", "good"],
  "non-voter": ["without its vote", "doubtful"],
  unreachable: ["unreachable", "bad"],
  unknown: ["not known here", "absent"],
};

export const PROGRESS = { COPYING: "is under way", STALLED: "stands still", ENDING: "is about to end" };
