# SPDX-License-Identifier: Apache-2.0
"""Token ids of everything that the model did not sample.

files       what a model directory says of its tokenizer, chat template and stop tokens
vocabulary  text to ids, where what looks like a special token is text; ids to text
guard       content that cannot be taken for special tokens while it is rendered
rendering   chat templates as Hugging Face renders them, with a clock that stands still
difference  what follows a turn of the model: the ids that its answers add to the stream
family      which model family a template is of
template    all of it together: `envkit.agent.types.Template`

Nothing here starts a thread, so that a process that has loaded a template can fork.
"""

from envkit.agent.tokens.template import ChatTemplate, load_template

__all__ = ["ChatTemplate", "load_template"]
