# SPDX-License-Identifier: Apache-2.0
"""What tools and users may say: any text, and text that looks like special tokens."""

from hypothesis import strategies as st

from .models import FAMILIES

SPECIAL = sorted(
    {each for parts in FAMILIES.values() for each in parts["special"] + parts["added"]}
)

scraps = st.sampled_from(
    [
        *("", " ", "\n", "\r\n", "\t", " \n \n", "> quoted", "<", "<|", "|>", ">", "\ue000"),
        *('{"a": [1, null, "x"]}', "\\ue000", "é", "e\u0301", "東京", "🙂", "\u0338", "'s", "\0"),
        *(
            "tool_call",
            "_call>",
            "<tool_",
            "<|im_",
            "end|>",
            "[gM",
            "ASK]",
            "\u2028",
            "\x1c",
            "{{ x }}",
        ),
    ]
)
characters = st.characters(codec="utf-8")
words = st.one_of(scraps, st.text(characters, max_size=12))
ordinary = (
    st.lists(words, max_size=6)
    .map("".join)
    .filter(lambda text: not any(each in text for each in SPECIAL))
)
"""No special token is spelt out in it."""
hostile = st.lists(st.one_of(words, st.sampled_from(SPECIAL)), max_size=8).map("".join)
