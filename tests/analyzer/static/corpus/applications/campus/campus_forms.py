"""Forms and serializers, written by hand but close to what everybody knows."""

import re
from datetime import date
from decimal import Decimal, InvalidOperation

from campus_http import ValidationFailed
from campus_utils import as_list, truthy


class FormError(ValueError):
    pass


class Field:
    def __init__(self, required=True, default=None):
        self.required = required
        self.default = default

    def __set_name__(self, owner, name):
        self.name = name

    def clean(self, value):
        if value is None or value == "":
            if self.required:
                raise FormError("this field is required")
            return self.default
        return self.to_python(value)

    def to_python(self, value):
        return value


class TextField(Field):
    def __init__(self, max_length=200, **kwargs):
        super().__init__(**kwargs)
        self.max_length = max_length

    def to_python(self, value):
        text = str(value).strip()
        if len(text) > self.max_length:
            raise FormError(f"at most {self.max_length} characters")
        return text


class RegexField(TextField):
    def __init__(self, pattern, message="wrong format", **kwargs):
        super().__init__(**kwargs)
        self.pattern = re.compile(pattern)
        self.message = message

    def to_python(self, value):
        text = super().to_python(value)
        if not self.pattern.fullmatch(text):
            raise FormError(self.message)
        return text


class EmailField(RegexField):
    def __init__(self, **kwargs):
        super().__init__(r"[^@\s]+@[^@\s]+\.[^@\s]+", "not an e-mail address", **kwargs)

    def to_python(self, value):
        return super().to_python(value).lower()


class IntegerField(Field):
    def __init__(self, minimum=None, maximum=None, **kwargs):
        super().__init__(**kwargs)
        self.minimum, self.maximum = minimum, maximum

    def to_python(self, value):
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise FormError("not a whole number") from None
        if self.minimum is not None and number < self.minimum:
            raise FormError(f"at least {self.minimum}")
        if self.maximum is not None and number > self.maximum:
            raise FormError(f"at most {self.maximum}")
        return number


class MoneyField(Field):
    def to_python(self, value):
        try:
            amount = Decimal(str(value))
        except InvalidOperation:
            raise FormError("not an amount") from None
        if amount <= 0:
            raise FormError("has to be positive")
        return amount


class ChoiceField(Field):
    def __init__(self, choices, **kwargs):
        super().__init__(**kwargs)
        self.choices = choices

    def to_python(self, value):
        try:
            return self.choices(value)
        except ValueError:
            raise FormError("one of " + ", ".join(choice.value for choice in self.choices)) from None


class DateField(Field):
    def to_python(self, value):
        try:
            return date.fromisoformat(str(value))
        except ValueError:
            raise FormError("not a date") from None


class BooleanField(Field):
    def __init__(self, **kwargs):
        super().__init__(**{"required": False, "default": False, **kwargs})

    def to_python(self, value):
        return truthy(value)


class ListField(Field):
    def __init__(self, of=None, max_items=500, **kwargs):
        super().__init__(**kwargs)
        self.of = of or Field()
        self.max_items = max_items

    def to_python(self, value):
        items = as_list(value)
        if len(items) > self.max_items:
            raise FormError(f"at most {self.max_items} items")
        if self.required and not items:
            raise FormError("this field is required")
        return [self.of.clean(item) for item in items]


class Form:
    fields: dict = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        cls.fields = {**cls.fields, **own}

    def __init__(self, data, comm=None, user=None):
        self.data = data
        self.comm = comm
        self.user = user
        self.errors = {}
        self.cleaned = {}

    def is_valid(self):
        for name, field in self.fields.items():
            try:
                value = field.clean(self.data.get(name))
                hook = getattr(self, f"clean_{name}", None)
                self.cleaned[name] = hook(value) if hook is not None else value
            except FormError as error:
                self.errors[name] = str(error)
        if not self.errors:
            try:
                self.clean()
            except FormError as error:
                self.errors["*"] = str(error)
        return not self.errors

    def clean(self):
        """Checks across fields; for subclasses."""

    def validated(self):
        """The cleaned values, or ValidationFailed."""
        if not self.is_valid():
            raise ValidationFailed("please correct the fields", fields=self.errors)
        return self.cleaned

    def __getitem__(self, name):
        return self.cleaned[name]


class Serializer:
    fields: tuple = ()
    rename: dict = {}

    def __init__(self, instance, many=False, context=None):
        self.instance = instance
        self.many = many
        self.context = context or {}

    @property
    def data(self):
        if self.many:
            return [self.represent(item) for item in self.instance]
        return self.represent(self.instance)

    def represent(self, item):
        row = {}
        for name in self.fields:
            getter = getattr(self, f"get_{name}", None)
            row[self.rename.get(name, name)] = getter(item) if getter else item.get(name)
        return row
