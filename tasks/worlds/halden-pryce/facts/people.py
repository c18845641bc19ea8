# SPDX-License-Identifier: Apache-2.0
"""Who works at the firm, and whom it writes to at its clients.

A person's key is the local part of the mail address: `nadia.petrov`. Grades change in one case,
so ask `grade_in`, not `grade`.
"""

from dataclasses import dataclass

from facts.firm import DOMAIN

GRADES = ("Partner", "Principal", "Manager", "Consultant", "Analyst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A fee earner: in one practice, with the grade held in January 2025."""

    key: str
    name: str
    practice: str
    grade: str


_TEAMS = {
    "Strategy": (
        ("Helena Marsden", "Partner"),
        ("Owen Tregarth", "Principal"),
        ("Priya Nandan", "Manager"),
        ("Callum Reid", "Consultant"),
        ("Alba Faria", "Consultant"),
        ("Jude Ashworth", "Analyst"),
        ("Mei Tanaka", "Analyst"),
    ),
    "Operations": (
        ("Gareth Holloway", "Partner"),
        ("Ruth Castell", "Principal"),
        ("Daniel Okoro", "Manager"),
        ("Simone Archer", "Manager"),
        ("Lewis Brandt", "Consultant"),
        ("Aoife Kerrigan", "Consultant"),
        ("Tariq Saleem", "Analyst"),
        ("Freya Lindqvist", "Analyst"),
    ),
    "Digital": (
        ("Marcus Vane", "Partner"),
        ("Leila Haddad", "Principal"),
        ("Tom Eversley", "Manager"),
        ("Nadia Petrov", "Consultant"),
        ("Ben Oyelaran", "Consultant"),
        ("Chloe Winters", "Consultant"),
        ("Sam Rutherford", "Analyst"),
        ("Yusuf Demir", "Analyst"),
    ),
    "Organisation": (
        ("Judith Aldane", "Partner"),
        ("Colin Mayhew", "Principal"),
        ("Erin Sutcliffe", "Manager"),
        ("Hugo Bellamy", "Consultant"),
        ("Wanda Okafor", "Consultant"),
        ("Rory Fennick", "Analyst"),
    ),
}
PROMOTED: dict[str, tuple[int, str]] = {"nadia.petrov": (7, "Manager")}
"""First month of the new grade, and the grade."""

STAFF = {
    "constance.pryce": ("Constance Pryce", "Managing Partner"),
    "malcolm.strand": ("Malcolm Strand", "Finance Director"),
    "bea.lockwood": ("Bea Lockwood", "Financial Controller"),
    "imogen.tate": ("Imogen Tate", "Billing"),
    "dev.mistry": ("Dev Mistry", "Resourcing"),
    "philippa.crane": ("Philippa Crane", "Head of People"),
    "nora.quill": ("Nora Quill", "Office of the Managing Partner"),
}


def _key(name: str) -> str:
    return name.lower().replace(" ", ".")


FEE_EARNERS: dict[str, Person] = {
    _key(name): Person(key=_key(name), name=name, practice=practice, grade=grade)
    for practice, team in _TEAMS.items()
    for name, grade in team
}


def grade_in(key: str, month: int) -> str:
    """The grade that the fee earner holds in the month (1 to 12) of 2025."""
    since, grade = PROMOTED.get(key, (13, ""))
    return grade if month >= since else FEE_EARNERS[key].grade


def name_of(key: str) -> str:
    """The full name of a fee earner or a member of staff."""
    return FEE_EARNERS[key].name if key in FEE_EARNERS else STAFF[key][0]


def address_of(key: str) -> str:
    """The mail address of a fee earner or a member of staff."""
    return f"{key}@{DOMAIN}"


def team_of(practice: str) -> tuple[Person, ...]:
    """The practice's fee earners, partner first."""
    return tuple(person for person in FEE_EARNERS.values() if person.practice == practice)
