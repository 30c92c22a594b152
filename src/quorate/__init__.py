"""All of Quorate under one name: its packages lie at the top of a checkout, and are links in here."""

from pkgutil import extend_path

# Spark's workers elsewhere get an archive with some of the packages, on machines where others may be installed.
__path__ = extend_path(__path__, __name__)
