"""The number of the form that digests of a state have: it stands alone, as clients need no records."""

from typing import Final

#: Raised where the same state gives another digest than before, by a new version of a record, say: nodes that compare
#: digests compare those of one form only.
DIGEST_FORM: Final = 1
