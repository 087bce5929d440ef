"""Scans the TLS listener on a port of this machine with sslyze: tls.py PORT ROOTS. Prints the findings as JSON."""

import json
import sys
from pathlib import Path

from sslyze import (
    CertificateInfoExtraArgument,
    RobotScanResultEnum,
    ScanCommand,
    ScanCommandsExtraArguments,
    Scanner,
    ServerNetworkLocation,
    ServerScanRequest,
)
from sslyze.mozilla_tls_profile.tls_config_checker import (
    MozillaTlsConfiguration,
    ServerNotCompliantWithTlsConfiguration,
    TlsConfigurationEnum,
    check_server_against_tls_configuration,
)

# sslyze takes a session for resumed only if its ticket is not renewed, and this scan is not about HTTP.
NOT_TRIED = {ScanCommand.HTTP_HEADERS, ScanCommand.SESSION_RESUMPTION}
VERSIONS = ["ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3"]


def main(port, roots):
    scanner = Scanner()
    scanner.queue_scans(
        [
            ServerScanRequest(
                server_location=ServerNetworkLocation(hostname="localhost", port=port, ip_address="127.0.0.1"),
                scan_commands=set(ScanCommand) - NOT_TRIED,
                scan_commands_extra_arguments=ScanCommandsExtraArguments(
                    certificate_info=CertificateInfoExtraArgument(custom_ca_file=Path(roots))
                ),
            )
        ]
    )
    (scan,) = scanner.get_results()
    if scan.scan_result is None:
        sys.exit(f"the scan came to nothing: {scan.connectivity_error_trace}")

    def found(name):
        attempt = getattr(scan.scan_result, name)
        if attempt.result is None:
            sys.exit(f"{name} came to nothing: {attempt.error_reason} {attempt.error_trace}")
        return attempt.result

    commands = {
        version: [suite.cipher_suite.name for suite in found(f"{version}_cipher_suites").accepted_cipher_suites]
        for version in VERSIONS
    }
    renegotiation = found("session_renegotiation")
    certificates = found("certificate_info")
    commands |= {
        "heartbleed": found("heartbleed").is_vulnerable_to_heartbleed,
        "ccs_injection": found("openssl_ccs_injection").is_vulnerable_to_ccs_injection,
        "compression": found("tls_compression").supports_compression,
        "early_data": found("tls_1_3_early_data").supports_early_data,
        "renegotiation_dos": renegotiation.is_vulnerable_to_client_renegotiation_dos,
        "secure_renegotiation": renegotiation.supports_secure_renegotiation,
        "robot": found("robot").robot_result
        in (RobotScanResultEnum.VULNERABLE_WEAK_ORACLE, RobotScanResultEnum.VULNERABLE_STRONG_ORACLE),
        "fallback_scsv": found("tls_fallback_scsv").supports_fallback_scsv,
        "extended_master_secret": found("tls_extended_master_secret").supports_ems_extension,
        "curves": sorted(curve.name for curve in found("elliptic_curves").supported_curves or []),
        "certificates_verified": [
            any(
                result.trust_store.path == Path(roots) and result.was_validation_successful
                for result in deployment.path_validation_results
            )
            for deployment in certificates.certificate_deployments
        ],
    }
    report = {"commands": commands, "mozilla": {}}
    for profile in (TlsConfigurationEnum.MOZILLA_INTERMEDIATE, TlsConfigurationEnum.MOZILLA_MODERN):
        try:
            check_server_against_tls_configuration(scan, MozillaTlsConfiguration.get(profile))
            issues = {}
        except ServerNotCompliantWithTlsConfiguration as difference:
            issues = difference.issues
        report["mozilla"][profile.value] = issues
    print(json.dumps(report, indent=2))


main(int(sys.argv[1]), sys.argv[2])
