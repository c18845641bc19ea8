# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible server in front of an engine of token ids, which keeps what was sampled.

Harnesses that are not ours send messages; a request that goes on from what was answered before,
message by message, goes on with the same token stream, by what the chat template writes between.
What cannot be proven to go on begins a stream of its own and is marked so.

types         what a client asks for, and what it is told
body          from a request's JSON to that; what cannot be carried out is refused
links         conversations compared, message by message
following     what may follow an answer and still be the same stream
said          from a sample to what the client is answered
branch        one chain of messages and its token stream
conversation  the branches of one harness's run
crowd         all conversations that are open
rows          from a conversation that ended to rows of the store
keep          rows made durable
answer        answers as OpenAI has them, whole and streamed
refusals      faults as HTTP
desk          requests in terms of conversations: answer one, end one, end all
server        paths
command       all of it: ``envkit proxy``
"""
