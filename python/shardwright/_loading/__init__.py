# SPDX-License-Identifier: Apache-2.0
"""Loading by the ranks of a job that runs: who reads what is planned in C++ (`_core.LoadCatalog`),
and what several ranks need is exchanged over the job's own process groups."""
from ._catalog import catalog_of, read_metadata
from ._job import Job
from ._load import ROUND_BYTES, Loading
from ._phase import Wanted
from ._report import LoadReport

__all__ = ["ROUND_BYTES", "Job", "LoadReport", "Loading", "Wanted", "catalog_of", "read_metadata"]
