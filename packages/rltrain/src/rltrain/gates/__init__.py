# SPDX-License-Identifier: Apache-2.0
"""What must hold before anything is trained. A gate that measured too little has failed."""
