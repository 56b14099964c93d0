from .network import Siamese

__all__ = ["Siamese"]
