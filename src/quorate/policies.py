"""What a policy is made of: a class whose ``validate`` is shown one of these, and returns nothing or raises.

See docs/policies.md.
"""

from quorate.controller.decisions.policies import (
    AlterConfigPolicy,
    ChangedConfigs,
    CreateTopicPolicy,
    NewTopic,
    PolicyViolation,
)
from quorate.metadata_log.errors import ApiError, ErrorCode

__all__ = [
    "AlterConfigPolicy",
    "ApiError",
    "ChangedConfigs",
    "CreateTopicPolicy",
    "ErrorCode",
    "NewTopic",
    "PolicyViolation",
]
