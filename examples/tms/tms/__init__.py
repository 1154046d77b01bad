"""TMS, a teacher management system: configurations of exams, their questions, exams and who takes them."""
