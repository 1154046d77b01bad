"""What follows from the signals. Imported by the services for its effect."""

from campus_signals import (
    application_decided,
    application_submitted,
    grade_published,
    logged_in,
    login_failed,
    payment_received,
    receiver,
    role_granted,
    student_dropped,
    student_enrolled,
    transcript_issued,
)

TEMPLATES = {
    "offer": "admissions/offer",
    "reject": "admissions/regret",
    "interview": "admissions/interview",
}


@receiver(logged_in)
def remember_login(comm, user, **_):
    comm.call("Audit", "/record", {"event": "login", "user": user})


@receiver(login_failed)
def count_failure(comm, email, **_):
    comm.call("Audit", "/record", {"event": "login_failed", "email": email})


@receiver(role_granted)
def tell_security(comm, user, role, by, **_):
    recorded = comm.call("Audit", "/record", {"event": "role", "user": user, "role": role, "by": by})
    comm.call("Mailer", "/send", {"to": "security@campus.example", "template": "accounts/role", "user": user})
    recorded.get()


@receiver(application_submitted)
def confirm_application(comm, application, email, **_):
    comm.call(
        "Mailer", "/send", {"to": email, "template": "admissions/received", "application": application}
    ).get()


@receiver(application_submitted, application_decided)
def index_application(comm, application, **values):
    comm.call(
        "Queue", "/publish", {"topic": "applications", "key": application, "status": values.get("decision")}
    )


@receiver(application_decided)
def write_to_applicant(comm, application, decision, email=None, **_):
    if email:
        comm.call(
            "Mailer", "/send", {"to": email, "template": TEMPLATES[decision], "application": application}
        ).get()


@receiver(student_enrolled)
def charge_course(comm, student, course, fee=0, **_):
    if fee:
        comm.call(
            "Queue", "/publish", {"topic": "charges", "student": student, "course": course, "fee": fee}
        ).get()


@receiver(student_enrolled, student_dropped)
def audit_enrolment(comm, student, course, **_):
    comm.call("Audit", "/record", {"event": "enrolment", "student": student, "course": course})


@receiver(grade_published)
def notify_student(comm, student, course, **_):
    comm.call("Mailer", "/send", {"to": student, "template": "exams/grade", "course": course})


@receiver(payment_received)
def lift_hold(comm, student, balance, **_):
    if balance <= 0:
        comm.call("Students", "/holds/remove", {"student": student, "kind": "fees"}).get()


@receiver(payment_received)
def send_receipt(comm, student, amount, **_):
    comm.call("Mailer", "/send", {"to": student, "template": "fees/receipt", "amount": str(amount)})


@receiver(transcript_issued)
def audit_transcript(comm, student, reference, **_):
    comm.call("Audit", "/record", {"event": "transcript", "student": student, "reference": reference}).get()
