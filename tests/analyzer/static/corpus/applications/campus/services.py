"""The services of the campus."""

import campus_receivers  # noqa: F401  connects the signals
from campus_accounts import Accounts
from campus_admissions import Admissions
from campus_enrolment import Enrolment
from campus_exams import Exams
from campus_fees import Fees
from campus_library import Library
from campus_timetable import Timetable
from campus_transcripts import Transcripts

__all__ = ["Accounts", "Admissions", "Enrolment", "Exams", "Fees", "Library", "Timetable", "Transcripts"]
