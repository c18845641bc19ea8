# SPDX-License-Identifier: Apache-2.0
"""The `filesystem_server`: listing, reading, finding and writing files below the root.

entries     what one folder or file is
listing     list_files, get_directory_tree, get_file_metadata
reading     read_text_file, read_image_file
office      the text inside docx, pptx and xlsx, for searching
finding     search_files (names), grep_files (contents, also inside pdf and office files)
writing     write_file, create_folder, copy_file, move_file
"""

from envkit.servers.filesystem.finding import TOOLS as FINDING
from envkit.servers.filesystem.listing import TOOLS as LISTING
from envkit.servers.filesystem.reading import TOOLS as READING
from envkit.servers.filesystem.writing import TOOLS as WRITING

TOOLS = (*LISTING, *READING, *FINDING, *WRITING)
