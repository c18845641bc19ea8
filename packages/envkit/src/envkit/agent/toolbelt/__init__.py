# SPDX-License-Identifier: Apache-2.0
"""The tools of one episode: `envkit.agent.types.Toolbelt`.

listing     what the trial's servers list, held to what its world expects
connection  one server: what follows when it is lost, and what is never asked twice
box         the agent's box: commands in it, and files that are kept there
local       tools that are carried out here
mcp         every tool of the trial's servers, under the names they are served by
code        commands and files in the agent's box, and no server at all
extras      an answer by a tool, a list of what is to do, and a toolbelt that tools are added to
"""

from envkit.agent.toolbelt.listing import check_toolbelt, list_checked

__all__ = ["check_toolbelt", "list_checked"]
