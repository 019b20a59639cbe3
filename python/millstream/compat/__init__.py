# SPDX-License-Identifier: Apache-2.0
"""Other packages' names for what is here; nothing is installed unless asked for."""
