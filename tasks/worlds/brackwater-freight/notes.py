# SPDX-License-Identifier: Apache-2.0
"""The text of the two finance notes: a blank line ends a section, its first line is its title."""

import facts

IN_FORCE = f"""\
1. Purpose
Adjusted EBITDA is the measure by which the segments are steered and the figure that lenders ask
for. The way it was worked out had grown over the years and differed between reports. This note
sets one definition for the Group and its segments.

2. What it replaces
This note is in force for the financial year 2025 and later. It replaces draft
{facts.DRAFT_POLICY}, which was circulated for comment and never came into force. Figures worked
out with the draft must not be quoted, neither inside the Group nor to lenders.

3. Why the draft was changed
Comments on the draft named two weaknesses. Share-based pay is a cost of employing people, and
adding it back made segments with many participants look better than they were. Selling a terminal
is not part of running one, and the draft left the gain inside the measure.

4. Calculation
Adjusted EBITDA starts from operating profit. These amounts are added back: depreciation and
amortisation; restructuring costs. These amounts are deducted: gains on disposal. Share-based
payments are no longer added back. Nothing else is adjusted without a new note.

5. The base of the margin
Fuel surcharges rise and fall with the oil price and are handed on to customers at cost, so they
say nothing about performance. The margin is therefore stated on net revenue, which is revenue less
fuel surcharges passed through. The draft had used revenue as reported.

6. Presentation
Amounts are shown in thousands of euro and margins with one decimal. A report that shows the
measure names this note. Earlier years are restated where they are shown beside 2025.

7. Questions
Questions about a case that this note does not settle go to Group Finance before the figure is
published.
"""

DRAFT = """\
1. Calculation
Adjusted EBITDA is operating profit plus depreciation and amortisation, restructuring costs and
share-based payments.

2. The base of the margin
The margin is stated on revenue as reported, including fuel surcharges.

3. Comments
Comments are welcome until 30 May 2025. Until a final note is issued this text is a proposal only.
"""


def sections(text: str) -> list[tuple[str, str]]:
    """Title and body of each section, the body on one line."""
    parts = [part.partition("\n") for part in text.strip().split("\n\n")]
    return [(title, " ".join(body.split())) for title, _, body in parts]
