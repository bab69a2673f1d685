"""Training under smoothing."""

from graycert.training.default_teacher import default_teacher
from graycert.training.distillation import distill
from graycert.training.early_stopping import EarlyStopping
from graycert.training.random_interception import RandomInterception
from graycert.training.record import TrainingRecord
from graycert.training.train import train

__all__ = ["EarlyStopping", "RandomInterception", "TrainingRecord", "default_teacher", "distill", "train"]
