"""A query of /allocation_candidates, and ``count`` of /v1/capacity, as the fields of a form, and as text.

The form holds any query, also one that is not valid: it takes names and values apart, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placement.extensions.v1 import query_text
from placement.schemas.document import urlencoded
from placement.search.query.parse import GROUP

Pairs = Sequence[tuple[str, str]]

_LABELS = {
    "resources": ("Resources", "VCPU:4,MEMORY_MB:8192"),
    "required": ("Traits", "CUSTOM_SSD,!CUSTOM_HDD"),
    "member_of": ("Aggregates", "in:uuid,uuid or !uuid"),
    "in_tree": ("In the tree of", "name or uuid of a provider"),
}
#: What values are made of, by the beginning of the parameter's name.
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
    "count": ("Copies per job", "each in another tree"),
}


@dataclass(frozen=True, slots=True)
class FormField:
    """An input for each value of a parameter; one that is empty if there is none.

    Args:
        name: That of the parameter.
        suggests: What the values are made of: classes, traits, aggregates or providers; empty for anything else.
    """

    name: str
    label: str
    hint: str
    values: tuple[str, ...]
    suggests: str = ""


@dataclass(frozen=True, slots=True)
class FormGroup:
    """The fields of one group.

    Args:
        is_spare: Whether the query has no such group: the fields are there to add one.
    """

    suffix: str
    is_spare: bool
    fields: tuple[FormField, ...]

    @property
    def summary(self) -> str:
        """What the group asks for, in a line."""
        return " · ".join(value for field in self.fields for value in field.values if value)


@dataclass(frozen=True, slots=True)
class QueryForm:
    """A query as a form and as text.

    Args:
        others: Names and values that the form has no field for.
        text: The query string, readable; its parameters are on lines of their own.
    """

    groups: tuple[FormGroup, ...]
    common: tuple[FormField, ...]
    group_policy: str
    others: tuple[tuple[str, str], ...]
    text: str

    @classmethod
    def of(cls, pairs: Pairs) -> QueryForm:
        """Return the form that holds these parameters."""
        values: dict[str, list[str]] = {}
        suffixes = {"": None}
        for name, value in pairs:
            values.setdefault(name, []).append(value)
            if parameter := GROUP.fullmatch(name):
                suffixes[parameter[2]] = None
        spare = next(str(number) for number in range(1, len(suffixes) + 1) if str(number) not in suffixes)
        fields = tuple(_field(name, *about, values) for name, about in _COMMON.items())
        known = {*_COMMON, "group_policy"}
        return cls(
            groups=(*(_group(suffix, False, values) for suffix in suffixes), _group(spare, True, values)),
            common=fields,
            group_policy=values.get("group_policy", [""])[0],
            others=tuple((name, value) for name, value in pairs if name not in known and not GROUP.fullmatch(name)),
            text=query_text.text(pairs).replace("&", "\n&"),
        )


def parse_text(text: str) -> Pairs:
    """Return the parameters of a query string that was typed or pasted: lines, a leading ``?`` or a URL do not matter.

    Raises:
        InvalidQuery: It is not UTF-8 when it is unquoted, or holds NUL.
    """
    line = "".join(part.strip() for part in text.splitlines())
    return urlencoded(line.rpartition("?")[2].encode(), "utf-8", "parameter")


def of_search(pairs: Pairs) -> Pairs:
    """Return the parameters that a search takes."""
    return [(name, value) for name, value in pairs if name != "count"]


def of_claim(pairs: Pairs) -> Pairs:
    """Return the parameters that the query of a claim takes: a claim has one place, and a count beside its query."""
    return [(name, value) for name, value in of_search(pairs) if name != "limit"]


def without_blanks(pairs: Iterable[tuple[str, str]]) -> Pairs:
    """Return the parameters that have a value: a form sends its empty fields, too."""
    return [(name, value.strip()) for name, value in pairs if value.strip()]


def _group(suffix: str, is_spare: bool, values: dict[str, list[str]]) -> FormGroup:
    return FormGroup(suffix, is_spare, tuple(_field(name + suffix, *about, values) for name, about in _LABELS.items()))


def _field(name: str, label: str, hint: str, values: dict[str, list[str]]) -> FormField:
    suggests = next((what for parameter, what in _SUGGESTS.items() if name.startswith(parameter)), "")
    return FormField(name, label, hint, tuple(values.get(name, [""])), suggests)
