"""What is known of libraries: one file for each, with a table of what its functions do.

A function that stands in no table may do anything with what it is given. To add one, write what it does as a
function of a ``LibraryCall`` that returns None where nothing is known, and put it into the table by its name.
"""

from analyzer.static.libraries import (
    builtin_functions,
    collection_types,
    context_managers,
    environment,
    function_tools,
    inspection,
    iteration_tools,
    random_choices,
    retrying,
)
from analyzer.static.libraries.library_call import Known, LibraryCall

__all__ = ["KNOWN", "LibraryCall"]

KNOWN: dict[str, Known] = {
    **builtin_functions.FUNCTIONS,
    **collection_types.FUNCTIONS,
    **context_managers.FUNCTIONS,
    **environment.FUNCTIONS,
    **function_tools.FUNCTIONS,
    **inspection.FUNCTIONS,
    **iteration_tools.FUNCTIONS,
    **random_choices.FUNCTIONS,
    **retrying.FUNCTIONS,
}
"""What functions and classes outside the source tree do, by their dotted name."""
