"""The texts of the interface. `_` and `ngettext` are gettext's, also in templates, so that Babel finds the texts and a
catalogue of another language can take their place. Until there is one they return what they are given."""

from __future__ import annotations

from gettext import NullTranslations

TRANSLATIONS = NullTranslations()

_ = TRANSLATIONS.gettext
ngettext = TRANSLATIONS.ngettext
