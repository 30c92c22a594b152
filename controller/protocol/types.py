"""The base types of all messages of the protocol."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)

from quorate.controller.protocol.problems import problem_of
from quorate.metadata_log.errors import ErrorCode, InvalidArgument, InvalidId
from quorate.metadata_log.ids import UUID_BYTES, uuid_from_text, uuid_text
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX, RECORDS_PER_OPERATION_MAX, STRING_BYTES_MAX

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # pydantic gives it no public name


class _CheckedMessage(ModelMetaclass):
    """Makes messages whose mistakes are ``InvalidArgument``, where a program makes them.

    What is read from bytes does not come by here: it is refused by whoever reads it, in words of its own.
    """

    if not TYPE_CHECKING:  # type checkers go by the fields

        def __call__(self, *args: Any, **values: Any) -> Any:
            if args:
                raise InvalidArgument(f"{self.__name__}: its fields are given by name")
            try:
                return super().__call__(**values)
            except ValidationError as error:
                problem = problem_of(error, shows_value=not issubclass(self, SecretMessage))
            # Out here no traceback leads to what was found.
            raise InvalidArgument(f"{self.__name__}: {problem}")


class Message(BaseModel, metaclass=_CheckedMessage):
    """A request, a response or a part of one. Unknown fields and wrong types are refused, nothing is converted.

    Raises:
        InvalidArgument: a value against its rule, or a name that no field has.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class SecretMessage(Message):
    """A request that may hold secrets: whoever gets it wrong is not told what was found, and no log is."""


def _uuid(value: Any) -> bytes:
    if isinstance(value, bytes) and len(value) == UUID_BYTES:
        return value
    if not isinstance(value, str):
        raise ValueError("a uuid is 22 characters of url-safe base64, or 16 bytes")
    try:
        return uuid_from_text(value)
    except InvalidId as error:
        raise ValueError(str(error)) from error


#: 16 bytes in Python and msgpack, Kafka's 22 characters in JSON.
UuidField = Annotated[
    bytes,
    PlainValidator(_uuid),
    PlainSerializer(uuid_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "minLength": 22, "maxLength": 22, "description": "uuid, url-safe base64"}),
]

#: Bytes of a secret: a salt, what a hash gives; the longest hash has 64.
_SECRET_BYTES_MAX: Final = 1_024
_SECRET_CHARS_MAX: Final = (_SECRET_BYTES_MAX + 2) // 3 * 4


def _secret(value: Any) -> bytes:
    # What is refused is not repeated.
    if not isinstance(value, bytes):
        if not isinstance(value, str):
            raise ValueError("must be base64")
        if len(value) > _SECRET_CHARS_MAX:
            raise ValueError(f"has more than {_SECRET_BYTES_MAX} bytes")
        try:
            value = base64.b64decode(value, validate=True)
        except ValueError:
            raise ValueError("must be base64") from None
    if len(value) > _SECRET_BYTES_MAX:
        raise ValueError(f"has more than {_SECRET_BYTES_MAX} bytes")
    return bytes(value)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


#: Bytes in Python and msgpack, base64 in JSON; not shown where the message is.
SecretField = Annotated[
    bytes,
    PlainValidator(_secret),
    PlainSerializer(_base64, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "maxLength": _SECRET_CHARS_MAX}),
    Field(repr=False),
]

Int8 = Annotated[int, Field(ge=-(2**7), le=2**7 - 1)]
Int16 = Annotated[int, Field(ge=-(2**15), le=2**15 - 1)]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
BrokerIdField = Annotated[int, Field(ge=0, le=2**31 - 1)]
PartitionIdField = Annotated[int, Field(ge=0, le=2**31 - 1)]

#: A string whose bytes are checked where it is used: what is wrong with a config has words of its own.
Text = Annotated[str, Field(max_length=STRING_BYTES_MAX)]


def _within_bytes(text: str) -> str:
    if len(text) > STRING_BYTES_MAX // 4 and len(text.encode()) > STRING_BYTES_MAX:
        raise ValueError(f"a text has at most {STRING_BYTES_MAX} bytes in UTF-8")
    return text


#: A string that a record can hold.
RecordText = Annotated[Text, AfterValidator(_within_bytes)]
#: A string that a record can hold whatever its characters are: none takes more than four bytes.
Name = Annotated[str, Field(max_length=STRING_BYTES_MAX // 4)]
#: Brokers of one partition, registered or not; the slots of a partition bound any such list.
BrokerList = Annotated[list[Int32], Field(max_length=PARTITION_SLOTS_MAX)]

#: Things that one request may name: each becomes at least one record, or one line of the answer.
ITEMS_MAX = RECORDS_PER_OPERATION_MAX


class ItemResult(Message):
    """Outcome for one of the things that a request names."""

    error_code: ErrorCode = Field(default=ErrorCode.NONE, strict=False)
    #: None where there is no error.
    error_message: str | None = None
