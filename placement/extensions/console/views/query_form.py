"""A query of /allocation_candidates, and ``count`` of /v1/capacity, as form fields and as text.

The form accepts any query, even an invalid one: names and values are split but not validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placement.extensions.v1 import query_text
from placement.schemas.document import parse_urlencoded
from placement.search.query.parse import GROUP

Pairs = Sequence[tuple[str, str]]

_LABELS = {
    "resources": ("Resources", "VCPU:4,MEMORY_MB:8192"),
    "required": ("Traits", "CUSTOM_SSD,!CUSTOM_HDD"),
    "member_of": ("Aggregates", "in:uuid,uuid or !uuid"),
    "in_tree": ("In the tree of", "name or uuid of a provider"),
}
#: Kind of the suggested names, by prefix of the parameter.
_SUGGESTS = {
    "resources": "classes",
    "required": "traits",
    "root_required": "traits",
    "member_of": "aggregates",
    "in_tree": "providers",
}
_COMMON = {
    "root_required": ("Traits of the root", "COMPUTE_NODE,!COMPUTE_STATUS_DISABLED"),
    "same_subtree": ("Same subtree", "suffixes, such as 1,2"),
    "limit": ("At most", "number of candidates"),
    "count": ("Copies per job", "each in a different tree"),
}


@dataclass(frozen=True, slots=True)
class FormField:
    """The inputs of a parameter: one for each value, or an empty one.

    Attributes:
        name: The name of the parameter.
        suggests: Kind of names to suggest: classes, traits, aggregates or providers; empty for no suggestions.
    """

    name: str
    label: str
    hint: str
    values: tuple[str, ...]
    suggests: str = ""


@dataclass(frozen=True, slots=True)
class FormGroup:
    """The fields of one group.

    Attributes:
        is_spare: Whether this is an empty group that the user can add to the query.
    """

    suffix: str
    is_spare: bool
    fields: tuple[FormField, ...]

    @property
    def summary(self) -> str:
        """All values of the group on one line."""
        return " · ".join(value for field in self.fields for value in field.values if value)


@dataclass(frozen=True, slots=True)
class QueryForm:
    """A query as a form and as text.

    Attributes:
        hidden_parameters: Parameters without a field, as names and values.
        text: The query string in readable form, one parameter per line.
    """

    groups: tuple[FormGroup, ...]
    common: tuple[FormField, ...]
    group_policy: str
    hidden_parameters: tuple[tuple[str, str], ...]
    text: str

    @classmethod
    def from_parameters(cls, pairs: Pairs) -> QueryForm:
        """Return the form filled with these parameters."""
        values: dict[str, list[str]] = {}
        suffixes = {"": None}
        for name, value in pairs:
            values.setdefault(name, []).append(value)
            if parameter := GROUP.fullmatch(name):
                suffixes[parameter[2]] = None
        spare = next(str(number) for number in range(1, len(suffixes) + 1) if str(number) not in suffixes)
        fields = tuple(_field(name, label, hint, values) for name, (label, hint) in _COMMON.items())
        form_fields = {*_COMMON, "group_policy"}
        return cls(
            groups=(*(_group(suffix, False, values) for suffix in suffixes), _group(spare, True, values)),
            common=fields,
            group_policy=values.get("group_policy", [""])[0],
            hidden_parameters=tuple(
                (name, value) for name, value in pairs if name not in form_fields and not GROUP.fullmatch(name)
            ),
            text=query_text.text(pairs).replace("&", "\n&"),
        )


def parse_text(text: str) -> Pairs:
    """Return the parameters of a typed or pasted query string, which may span lines, start with ``?`` or be a URL.

    Raises:
        InvalidQuery: The decoded text is not UTF-8 or contains NUL.
    """
    line = "".join(part.strip() for part in text.splitlines())
    return parse_urlencoded(line.rpartition("?")[2].encode(), "utf-8", "parameter")


def of_search(pairs: Pairs) -> Pairs:
    """Return the parameters of a search."""
    return [(name, value) for name, value in pairs if name != "count"]


def of_claim(pairs: Pairs) -> Pairs:
    """Return the parameters of a claim's query: a claim takes no limit, and its count is not part of the query."""
    return [(name, value) for name, value in of_search(pairs) if name != "limit"]


def without_blanks(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """Return the non-empty parameters, stripped: a form also sends its empty fields."""
    return [(name, value.strip()) for name, value in pairs if value.strip()]


def _group(suffix: str, is_spare: bool, values: dict[str, list[str]]) -> FormGroup:
    fields = tuple(_field(name + suffix, label, hint, values) for name, (label, hint) in _LABELS.items())
    return FormGroup(suffix, is_spare, fields)


def _field(name: str, label: str, hint: str, values: dict[str, list[str]]) -> FormField:
    suggests = next((kind for parameter, kind in _SUGGESTS.items() if name.startswith(parameter)), "")
    return FormField(name, label, hint, tuple(values.get(name, [""])), suggests)
