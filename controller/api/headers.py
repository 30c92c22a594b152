"""Header names of Quorate's own, and what they mean."""

from __future__ import annotations

from typing import Final

#: Both ways: names the request in logs and errors. Made by the server where the client sends none.
REQUEST_ID: Final = "X-Request-Id"

# In every answer. Where a standby passed the request on, all of them are the active controller's.
#: Node id of the node that made it.
NODE: Final = "X-Quorate-Node"
CLUSTER: Final = "X-Quorate-Cluster"
#: Node id of the active controller, as far as the answering node knows; empty when it knows none.
ACTIVE: Final = "X-Quorate-Active"
#: Newest leader epoch that the answering node knows of.
EPOCH: Final = "X-Quorate-Epoch"
#: Exclusive end of what the answering node knows to be committed.
HIGH_WATERMARK: Final = "X-Quorate-High-Watermark"

#: In every answer of a process of brokers, which has no ``NODE``: "brokers".
PROCESS: Final = "X-Quorate-Process"

#: On a request: in whose name it is made, ``Type:name``. Believed where there is no authorizer, of who is listed as a
#: proxy, and of controllers.
PRINCIPAL: Final = "X-Quorate-Principal"
#: On a request: the name that the program gives itself, Kafka's client id, by which client quotas know it.
CLIENT_ID: Final = "X-Quorate-Client-Id"
#: On a request: the trace that it is a part of (W3C Trace Context). Only a node that traces looks at it.
TRACE_PARENT: Final = "traceparent"
#: On a request that a standby passes on: the IP address of the client that it came from.
CLIENT: Final = "X-Quorate-Client"
#: On a request that a standby passes on: how its client proved who it is, which node it is, if any, and until when
#: that holds (``until/`` and milliseconds since 1970), if it ends.
IDENTITY: Final = "X-Quorate-Identity"
#: On a request that a standby passes on: the principal that asked in its client's name, where one did.
PROXY: Final = "X-Quorate-Proxy"
#: On a request that a standby passes on: how many times that was done. More than one is refused.
HOPS: Final = "X-Quorate-Hops"
#: On a change: the digest of the facts that it goes by (``plan_models.digest_of_facts``). It is decided only while they
#: are so. For whoever may read them.
EXPECTED_FACTS: Final = "X-Quorate-Expected-Facts"
#: On a request: how long (ms) the client will wait.
TIMEOUT_MS: Final = "X-Quorate-Timeout-Ms"

# The metadata feed. Offsets are of records; ends are exclusive.
LOG_START_OFFSET: Final = "X-Quorate-Log-Start-Offset"
#: First record in the body; with an empty body the offset that was asked for.
BASE_OFFSET: Final = "X-Quorate-Base-Offset"
#: End of the body: the next offset to ask for.
END_OFFSET: Final = "X-Quorate-End-Offset"
#: Epoch of the last batch in the body, to be sent along with END_OFFSET; empty when the body is.
END_EPOCH: Final = "X-Quorate-End-Epoch"

# Checkpoints.
#: "<end offset>-<epoch>" of the checkpoint that the body is a piece of.
CHECKPOINT: Final = "X-Quorate-Checkpoint"
#: Bytes of the whole checkpoint.
CHECKPOINT_SIZE: Final = "X-Quorate-Checkpoint-Size"
#: Position of the body's first byte in it.
CHECKPOINT_POSITION: Final = "X-Quorate-Checkpoint-Position"
#: CRC-32C of the body, 8 hexadecimal digits.
CRC: Final = "X-Quorate-Crc32c"
