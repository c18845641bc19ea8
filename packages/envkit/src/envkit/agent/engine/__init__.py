# SPDX-License-Identifier: Apache-2.0
"""The client of inference engines that speak token ids.

In the order of a request:

options     which engine, and how it is to be asked
asked       one request, before it takes the shape of a protocol
wire        the two protocols: bodies out of encoded prompts, answers into their parts
connection  requests to one engine, bounded by silence; the names of what goes wrong there
line        one connection, and the exchange on it
http        one response, read strictly
events      server-sent events
refusal     what an engine's own word for an error means
answer      what an engine said, gathered
judge       from that to a sample that may be trained on, or the name of why it may not
probe       of which distribution an engine's logprobs are
client      `open_engine`, and the `EngineClient` that samples
"""

from envkit.agent.engine.client import EngineClient, open_engine
from envkit.agent.engine.options import EngineOptions

__all__ = ["EngineClient", "EngineOptions", "open_engine"]
