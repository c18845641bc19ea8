# SPDX-License-Identifier: Apache-2.0
"""Calls read out of what a model said: `envkit.agent.types.Parser`.

raw      a call as it was said, and why one could not be read
reader   a text read from left to right, in time linear in its length
schema   what a JSON Schema allows
spoken   values that were said as text, given a type
check    values that were said as JSON, held against a schema
typed    a call by its tool's schema
formats  one module each: hermes, qwen3_xml, glm, llama3, mistral
tags     the tag around a call, and where to go on after a broken one
turn     a whole turn: thinking, content, calls
format   calls said as each format has them, for transcripts that no model sampled

Contract: any text is parsed, without an exception and in linear time. A call that cannot be read is
named with what is wrong and how to say it right; calls beside it are still read. A turn that
tried to call something is never taken for a final answer in silence.
"""

from envkit.agent.parse.raw import cut_off
from envkit.agent.parse.turn import FORMATS, TurnParser, parser_named

__all__ = ["FORMATS", "TurnParser", "cut_off", "parser_named"]
