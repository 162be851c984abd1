"""Settings of svc-occupancy: only those that all services share (see `chassis.runtime.settings`)."""

from __future__ import annotations

from dataclasses import dataclass

from chassis.runtime.settings import Environment, ServiceSettings, service_settings


@dataclass(frozen=True, slots=True)
class Config:
    service: ServiceSettings


def read(environment: Environment) -> Config:
    """Raises SettingsError."""
    return Config(service=service_settings(environment))
