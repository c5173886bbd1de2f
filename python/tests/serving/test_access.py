"""Who may ask the server, and over what: tokens, TLS, the health port."""

import contextlib
import http.client
import json
import os
import re
import resource
import socket
import ssl
import subprocess
import time

import grpc
import pytest
import running

pytestmark = running.needs_server

PREDICT = "/v1/models/plain:predict"
BODY = json.dumps({"instances": [1.0, 2.0]})


def serve(tmp_path, *flags, **options):
    base = tmp_path / "plain"
    base.mkdir()
    running.add_version(base, 1)
    return running.server(
        tmp_path,
        "--model_name=plain",
        f"--model_base_path={base}",
        *flags,
        **options,
    )


def refused(tmp_path, *flags):
    """What a server says that does not start."""
    ended = subprocess.run(
        [
            running.PROGRAM,
            "--port=18598",
            f"--model_base_path={tmp_path}",
            "--max_num_load_retries=0",
            *flags,
        ],
        stderr=subprocess.PIPE,
        text=True,
        timeout=running.DEADLINE,
        check=False,
    )
    assert ended.returncode == 255, ended.stderr
    return ended.stderr


def replace(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    os.rename(new, path)


def ask(connection, path=PREDICT, body=BODY, headers=None):
    """The status, the headers and the body of an answer."""
    connection.request("POST" if body else "GET", path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def plain(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=running.DEADLINE)


def predict(channel, metadata=None, timeout=running.DEADLINE):
    call = channel.unary_unary(
        "/tensorflow.serving.PredictionService/Predict",
        request_serializer=lambda m: m.SerializeToString(),
        response_deserializer=running.message("PredictResponse").FromString,
    )
    request = running.predict_request("plain", x=[1.0])
    response = call(request, timeout=timeout, metadata=metadata)
    return list(response.outputs["twice"].float_val)


def code_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code(), error.value.details()


def health(channel):
    call = channel.unary_unary("/grpc.health.v1.Health/Check")
    return call(b"", timeout=running.DEADLINE)


# --- Tokens.


def test_tokens_on_both_ports(tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("# of two teams\nfirst\nsecond # the other\n")
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    with serve(
        tmp_path,
        f"--auth_token_file={tokens}",
        f"--monitoring_config_file={monitoring}",
    ) as server:
        for token in ("first", "second"):
            metadata = [("authorization", f"Bearer {token}")]
            assert predict(server.channel, metadata) == [2]
            headers = {"Authorization": f"Bearer {token}"}
            assert ask(plain(server.rest_port), headers=headers)[0] == 200
        for value in (None, "Bearer third", "Bearer", "Basic first", "first"):
            metadata = value and [("authorization", value)]
            code, text = code_of(lambda m=metadata: predict(server.channel, m))
            assert code == grpc.StatusCode.UNAUTHENTICATED
            assert "token" in text
            headers = value and {"Authorization": value}
            for path in (PREDICT, "/v1/config", "/v1/models/plain:nonsense"):
                status, head, body = ask(plain(server.rest_port), path, BODY, headers)
                assert status == 401
                assert head["WWW-Authenticate"] == 'Bearer realm="headrace"'
                assert json.loads(body) == {"error": text}
        for path in ("/monitoring/prometheus/metrics", "/v1/models/plain", "/"):
            assert ask(plain(server.rest_port), path, None)[0] == 401
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert ask(plain(server.rest_port), path, None)[0] == 200
        assert health(server.channel) == b"\x08\x01"
        reflection = server.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        )
        code, _ = code_of(lambda: list(reflection(iter([b":\x00"]), timeout=60)))
        assert code == grpc.StatusCode.UNAUTHENTICATED
        # Nothing of all these reached the model.
        status, _, body = ask(
            plain(server.rest_port),
            "/monitoring/prometheus/metrics",
            None,
            {"Authorization": "bearer first"},
        )
        counts = re.findall(r":tensorflow:serving:request_count\{.*\} (\d+)", body)
        assert counts == ["4"], body


def test_a_body_without_a_token_is_not_taken_in(tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("first\n")
    with serve(tmp_path, f"--auth_token_file={tokens}") as server:
        for path in (PREDICT, "/v2/health/live"):
            with socket.create_connection(("127.0.0.1", server.rest_port)) as s:
                s.settimeout(running.DEADLINE)
                head = f"GET {path} HTTP/1.1\r\nContent-Length: 500000000\r\n\r\n"
                s.sendall(head.encode())
                # The body never comes, and the answer is there.
                assert s.recv(100).startswith(b"HTTP/1.1 401 Unauthorized")
        two = "Authorization: Bearer first\r\n" * 2
        with socket.create_connection(("127.0.0.1", server.rest_port)) as s:
            s.sendall(f"GET /v1/models/plain HTTP/1.1\r\n{two}\r\n".encode())
            assert s.recv(100).startswith(b"HTTP/1.1 401 Unauthorized")


def test_tokens_change_and_broken_ones_do_not_count(tmp_path):
    tokens = tmp_path / "tokens.txt"
    assert "tokens.txt" in refused(tmp_path, f"--auth_token_file={tokens}")
    tokens.write_text("# nobody\n")
    assert "there is no token" in refused(tmp_path, f"--auth_token_file={tokens}")
    tokens.write_text("one two\n")
    assert "line 1 is no token" in refused(tmp_path, f"--auth_token_file={tokens}")
    tokens.write_text("old\n")

    def knows(server, token):
        headers = {"Authorization": f"Bearer {token}"}
        rest = ask(plain(server.rest_port), headers=headers)[0] == 200
        try:
            return (
                predict(server.channel, [("authorization", f"Bearer {token}")]) == [2]
                and rest
            )
        except grpc.RpcError as e:
            assert e.code() == grpc.StatusCode.UNAUTHENTICATED
            return False

    with serve(tmp_path, f"--auth_token_file={tokens}") as server:
        assert knows(server, "old")
        replace(tokens, "new\n")
        running.wait_until(lambda: knows(server, "new"))
        assert not knows(server, "old")
        replace(tokens, "two words\n")
        running.wait_until(lambda: "is no token" in server.lines())
        assert knows(server, "new")
        tokens.unlink()
        running.wait_until(lambda: server.lines().count("the old one stays") == 2)
        assert knows(server, "new")


def test_browsers_may_send_a_token(tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("first\n")
    with serve(
        tmp_path, f"--auth_token_file={tokens}", "--rest_api_enable_cors_support"
    ) as server:
        connection = plain(server.rest_port)
        connection.request("OPTIONS", PREDICT, headers={"Origin": "http://x"})
        answer = connection.getresponse()
        assert answer.status == 200
        allowed = answer.headers["Access-Control-Allow-Headers"]
        assert allowed == "Authorization, Content-Type"


# --- The health port.


def test_the_health_port_opens_before_models_are_loaded(tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("first\n")
    port = running.free_port()
    base = tmp_path / "plain"
    base.mkdir()
    # No version yet: the server waits for one, and its ports with it.
    rest_port, grpc_port = running.free_port(), running.free_port()
    process = subprocess.Popen(
        [
            running.PROGRAM,
            f"--port={grpc_port}",
            f"--rest_api_port={rest_port}",
            f"--health_port={port}",
            f"--auth_token_file={tokens}",
            "--model_name=plain",
            f"--model_base_path={base}",
        ],
    )

    def get(path):
        try:
            return ask(plain(port), path, None)[0]
        except OSError:
            return None

    try:
        running.wait_until(lambda: get("/v2/health/live") == 200)
        assert get("/v2/health/ready") == 503
        assert get("/monitoring/prometheus/metrics") == 200
        assert get("/v1/models/plain") == 404
        with pytest.raises(OSError):
            ask(plain(rest_port))
        running.add_version(base, 1)
        running.wait_until(lambda: get("/v2/health/ready") == 200)
        headers = {"Authorization": "Bearer first"}

        def asked():
            with contextlib.suppress(OSError):
                return ask(plain(rest_port), headers=headers)[0]

        running.wait_until(lambda: asked() == 200)
    finally:
        process.kill()
        process.wait()


def test_the_health_port_is_a_port_of_its_own(tmp_path):
    assert "is another port" in refused(tmp_path, "--health_port=18598")
    assert "70000 is no port" in refused(tmp_path, "--health_port=70000")


# --- TLS.


def run_openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Certificates:
    """Keys and certificates in a folder, made as they are asked for."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def path(self, name):
        return self.folder / name

    def make(self, name, ca=None):
        key, cert = self.path(f"{name}.key"), self.path(f"{name}.pem")
        signed = (
            ("-CA", self.path(f"{ca}.pem"), "-CAkey", self.path(f"{ca}.key"))
            if ca
            else ()
        )
        run_openssl(
            *("req", "-x509", "-newkey", "ec", "-nodes", "-days", 2),
            *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", key, "-out", cert, *signed),
        )

    def text(self, name):
        return self.path(name).read_text()

    def config(self, server, ca=None, inline=False):
        """An SSLConfig: with the texts, or with paths."""

        def value(name):
            if not inline:
                return f"file:{self.path(name)}"
            return self.text(name).replace("\n", "\\n")

        text = f'server_key: "{value(server + ".key")}"\n'
        text += f'server_cert: "{value(server + ".pem")}"\n'
        if ca:
            text += f'custom_ca: "{value(ca + ".pem")}"\nclient_verify: true\n'
        return text


@pytest.fixture
def certificates(tmp_path):
    made = Certificates(tmp_path / "certificates")
    made.make("ca")
    made.make("server", "ca")
    return made


def client_context(certificates, ca="ca", client=None):
    context = ssl.create_default_context(cafile=certificates.path(f"{ca}.pem"))
    # Certificates of the tests have no key usage.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if client:
        context.load_cert_chain(
            certificates.path(f"{client}.pem"), certificates.path(f"{client}.key")
        )
    return context


def secure(port, context):
    return http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=running.DEADLINE, context=context
    )


def channel(certificates, port, ca="ca", client=None):
    of_client = ()
    if client:
        of_client = (
            certificates.text(f"{client}.key").encode(),
            certificates.text(f"{client}.pem").encode(),
        )
    return grpc.secure_channel(
        f"localhost:{port}",
        grpc.ssl_channel_credentials(
            certificates.text(f"{ca}.pem").encode(), *of_client
        ),
        # Channels of a process share connections where they can.
        [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)],
    )


@pytest.mark.parametrize("inline", [True, False])
def test_tls_on_both_ports(tmp_path, certificates, inline):
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server", inline=inline))
    monitoring = tmp_path / "monitoring.config"
    monitoring.write_text("prometheus_config { enable: true }")
    with serve(
        tmp_path,
        f"--ssl_config_file={config}",
        f"--rest_api_ssl_config_file={config}",
        f"--monitoring_config_file={monitoring}",
    ) as server:
        with channel(certificates, server.port) as c:
            assert predict(c) == [2]
        code, _ = code_of(lambda: predict(server.channel))
        assert code == grpc.StatusCode.UNAVAILABLE
        context = client_context(certificates)
        connection = secure(server.rest_port, context)
        for _ in range(3):  # one connection, several requests
            assert ask(connection)[0] == 200
        for path in ("/v2/health/live", "/monitoring/prometheus/metrics"):
            assert ask(connection, path, None)[0] == 200
        assert connection.sock.version() == "TLSv1.3"
        connection.close()
        old = client_context(certificates)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert ask(secure(server.rest_port, old))[0] == 200
        context.set_alpn_protocols(["h2", "http/1.1"])
        connection = secure(server.rest_port, context)
        assert ask(connection)[0] == 200
        assert connection.sock.selected_alpn_protocol() == "http/1.1"
        # Who does not speak TLS gets no answer.
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(plain(server.rest_port))
        certificates.make("stranger")
        with pytest.raises(ssl.SSLError):
            ask(secure(server.rest_port, client_context(certificates, "stranger")))


def test_large_bodies_over_tls(tmp_path, certificates):
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server"))
    with serve(tmp_path, f"--rest_api_ssl_config_file={config}") as server:
        connection = secure(server.rest_port, client_context(certificates))
        for n in (1, 3000, 3_000_000):
            status, _, body = ask(connection, body=BODY + " " * n)
            assert status == 200
            assert json.loads(body)["predictions"][1] == {"twice": 4.0, "y": 7.0}


def test_clients_must_show_a_certificate(tmp_path, certificates):
    certificates.make("client", "ca")
    certificates.make("stranger")
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server", "ca"))
    with serve(
        tmp_path, f"--ssl_config_file={config}", f"--rest_api_ssl_config_file={config}"
    ) as server:
        for _ in range(2):  # the second may be resumed
            with channel(certificates, server.port, client="client") as c:
                assert predict(c) == [2]
            context = client_context(certificates, client="client")
            assert ask(secure(server.rest_port, context))[0] == 200
        for client in (None, "stranger"):
            with channel(certificates, server.port, client=client) as c:
                code, _ = code_of(lambda c=c: predict(c))
                assert code == grpc.StatusCode.UNAVAILABLE
            context = client_context(certificates, client=client)
            with pytest.raises(OSError):
                ask(secure(server.rest_port, context))


def test_ssl_configs_that_are_refused(tmp_path, certificates):
    certificates.make("other")
    config = tmp_path / "ssl.config"
    good = certificates.config("server", inline=True)
    broken = certificates.text("server.pem").replace("M", "@")
    for text, said in [
        ("", "server_cert is no certificate in PEM"),
        (good.replace("server_key", "custom_ca"), "server_key is no private key"),
        (good.replace("server_cert", "no_field"), "no_field"),
        (good + "client_verify: true", "client_verify wants certificates"),
        (good + "client_verify: true custom_ca: 'x'", "client_verify wants"),
        (
            certificates.config("server").replace("server.key", "other.key"),
            "server_key does not fit server_cert",
        ),
        (certificates.config("server").replace("server.key", "none"), "none"),
        (
            good.replace("server_cert:", "client_verify: true\ncustom_ca:", 1)
            + f'server_cert: "file:{tmp_path}/broken"',
            "server_cert",
        ),
    ]:
        (tmp_path / "broken").write_text(broken)
        config.write_text(text)
        for flag in ("ssl_config_file", "rest_api_ssl_config_file"):
            assert said in refused(tmp_path, f"--{flag}={config}"), text


def shown(port, certificates, ca):
    """Whether a new connection shows a certificate that this one signed."""
    try:
        ask(secure(port, client_context(certificates, ca)))
        return True
    except ssl.SSLError:
        return False


def serves(certificates, port, ca):
    with channel(certificates, port, ca) as c:
        try:
            return predict(c) == [2]
        except grpc.RpcError as e:
            assert e.code() == grpc.StatusCode.UNAVAILABLE
            return False


def test_keys_change_while_connections_go_on(tmp_path, certificates):
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server"))
    certificates.make("new_ca")
    certificates.make("new_server", "new_ca")
    with serve(
        tmp_path, f"--ssl_config_file={config}", f"--rest_api_ssl_config_file={config}"
    ) as server:
        kept = secure(server.rest_port, client_context(certificates))
        assert ask(kept)[0] == 200
        socket_before = kept.sock
        with channel(certificates, server.port) as kept_channel:
            assert predict(kept_channel) == [2]
            # The files that the config names change, one after the other.
            replace(
                certificates.path("server.key"), certificates.text("new_server.key")
            )
            replace(
                certificates.path("server.pem"), certificates.text("new_server.pem")
            )
            running.wait_until(
                lambda: (
                    shown(server.rest_port, certificates, "new_ca")
                    and serves(certificates, server.port, "new_ca")
                )
            )
            assert not shown(server.rest_port, certificates, "ca")
            assert not serves(certificates, server.port, "ca")
            assert ask(kept)[0] == 200
            assert kept.sock is socket_before
            assert predict(kept_channel) == [2]
        # The config itself changes.
        certificates.make("third", "ca")
        replace(config, certificates.config("third", inline=True))
        running.wait_until(
            lambda: (
                shown(server.rest_port, certificates, "ca")
                and serves(certificates, server.port, "ca")
            )
        )


def test_broken_keys_leave_the_old_ones(tmp_path, certificates):
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server"))
    with serve(
        tmp_path, f"--ssl_config_file={config}", f"--rest_api_ssl_config_file={config}"
    ) as server:
        for breaks, said in [
            (lambda: replace(certificates.path("server.pem"), "no"), "no certificate"),
            (lambda: certificates.path("server.key").unlink(), "server.key"),
            (lambda: replace(config, "nonsense {"), "Invalid protobuf file"),
            (
                lambda: replace(config, certificates.config("ca", "ca")),
                "client_verify does not change",
            ),
        ]:
            before = server.lines()
            breaks()
            running.wait_until(
                lambda b=before, s=said: (
                    server.lines()[len(b) :].count("the old one stays") == 2
                    and s in server.lines()[len(b) :]
                )
            )
            assert shown(server.rest_port, certificates, "ca")
            assert serves(certificates, server.port, "ca")


# --- Many connections.


def raise_file_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@contextlib.contextmanager
def silent(port, count, says=b""):
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            s = socket.create_connection(("127.0.0.1", port), running.DEADLINE)
            opened.append(stack.enter_context(s))
            if says:
                s.sendall(says)
        yield opened


@pytest.mark.parametrize("tls", [False, True])
def test_ten_thousand_silent_connections(tmp_path, certificates, tls):
    count = min(10_000, raise_file_limit() - 500)
    flags = []
    if tls:
        config = tmp_path / "ssl.config"
        config.write_text(certificates.config("server"))
        flags.append(f"--rest_api_ssl_config_file={config}")
    with serve(tmp_path, *flags) as server:

        def connect():
            if tls:
                return secure(server.rest_port, client_context(certificates))
            return plain(server.rest_port)

        with silent(server.rest_port, count, b"GET /" if not tls else b""):
            for _ in range(3):
                assert ask(connect())[0] == 200
            assert predict(server.channel) == [2]


def test_ten_thousand_silent_connections_of_grpc(tmp_path):
    count = min(10_000, raise_file_limit() - 500)
    with serve(tmp_path) as server, silent(server.port, count):
        assert predict(server.channel) == [2]
        assert ask(plain(server.rest_port))[0] == 200


def test_more_connections_than_files(tmp_path):
    with serve(tmp_path, files=200) as server:
        before = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        assert predict(server.channel) == [2]
        # Those that are too many for gRPC's share are closed at once.
        with silent(server.port, 250):
            assert predict(server.channel) == [2]
            assert ask(plain(server.rest_port))[0] == 200
            with silent(server.rest_port, 250):
                assert ask(plain(server.rest_port))[0] == 200
                assert predict(server.channel) == [2]
        fds = f"/proc/{server.process.pid}/fd"
        running.wait_until(lambda: len(os.listdir(fds)) < before + 10)
        with grpc.insecure_channel(
            f"127.0.0.1:{server.port}", [("grpc.use_local_subchannel_pool", 1)]
        ) as c:
            assert predict(c) == [2]
        running.add_version(tmp_path / "plain", 2)
        running.wait_until(lambda: server.states("plain").get(2) == 30)


def test_grpc_over_a_unix_socket(tmp_path, certificates):
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server"))
    path = tmp_path / "s"
    flags = f"--grpc_socket_path={path}", f"--ssl_config_file={config}"
    with serve(tmp_path, *flags) as server:
        for target in (f"unix:{path}", f"localhost:{server.port}"):
            credentials = grpc.ssl_channel_credentials(
                certificates.text("ca.pem").encode()
            )
            name = [("grpc.ssl_target_name_override", "localhost")]
            with grpc.secure_channel(target, credentials, name) as c:
                assert predict(c) == [2]
        assert server.stop() == 0
        assert not path.exists()


def test_silent_connections_are_closed(tmp_path, certificates):
    config = tmp_path / "ssl.config"
    config.write_text(certificates.config("server"))
    with serve(
        tmp_path,
        f"--rest_api_ssl_config_file={config}",
        "--rest_api_timeout_in_ms=1000",
    ) as server:
        # Nothing of a handshake, and a part of one.
        for says in (b"", b"\x16\x03\x01"):
            with silent(server.rest_port, 20, says) as opened:
                for s in opened:
                    assert s.recv(100) == b""
        # A byte at a time does not help.
        with silent(server.rest_port, 1, b"\x16\x03\x01\x02\x00\x01") as opened:
            end = time.monotonic() + running.DEADLINE
            with contextlib.suppress(OSError):
                while time.monotonic() < end:
                    opened[0].sendall(b"\x00")
                    time.sleep(0.05)
            assert time.monotonic() < end
