// Tasks that show certificates, and a client of theirs.
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/match.h"
#include "distributed/load.h"
#include "distributed/process_transport.h"
#include "distributed/task/client.h"
#include "distributed/task/server.h"
#include "distributed/wire/methods.h"
#include "serving/access/test_certificates.h"
#include "tensorflow/core/protobuf/master.pb.h"

namespace headrace::distributed {
namespace {

TlsKeys KeysOf(const serving::TestCertificate& own,
               const serving::TestCertificate& trusts) {
  TlsKeys keys;
  keys.certificate = own.cert;
  keys.key = own.key;
  keys.roots = keys.client_roots = trusts.cert;
  return keys;
}

TEST(TlsCluster, TasksAndClientsMeet) {
  const auto loaded = LoadTransport();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto own = serving::MakeTestCertificate("localhost");
  const auto other = serving::MakeTestCertificate("localhost");
  const auto keyed = WithKeys(*loaded, KeysOf(own, own));
  ServerOptions options;
  options.transport = keyed.get();
  tensorflow::ServerDef def;
  auto* job = def.mutable_cluster()->add_job();
  job->set_name("worker");
  def.set_job_name("worker");
  (*job->mutable_tasks())[0] = "localhost:0";
  auto first = Server::Make(def, options);
  ASSERT_TRUE(first.ok()) << first.status();
  (*first)->Start();
  (*job->mutable_tasks())[1] = "localhost:0";
  (*job->mutable_tasks())[0] = (*first)->def().cluster().job(0).tasks().at(0);
  def.set_task_index(1);
  auto second = Server::Make(def, options);
  ASSERT_TRUE(second.ok()) << second.status();
  (*second)->Start();
  // By a transport of its own, so that it does not call the master itself.
  const auto lists = [&](TlsKeys keys) {
    const auto transport = WithKeys(*loaded, std::move(keys));
    const std::string at = (*second)->target().substr(strlen("grpc://"));
    const auto channel =
        Dialling(*transport, {}, "a client", /*allows_tensorflow=*/false)(at);
    CallOptions call;
    call.deadline = Clock::now() + std::chrono::seconds(60);
    call.wait_for_ready = true;
    tensorflow::ListDevicesResponse devices;
    const Status s =
        CallAndWait(*channel, master::kListDevices.path,
                    tensorflow::ListDevicesRequest(), &devices, call);
    return std::pair(
        s, devices.local_device_size() + devices.remote_device_size());
  };
  const auto [s, devices] = lists(KeysOf(own, own));
  EXPECT_TRUE(s.ok()) << s;
  EXPECT_GE(devices, 2);
  for (const TlsKeys& keys :
       {KeysOf(other, own), KeysOf(own, other), TlsKeys()}) {
    const auto since = Clock::now();
    const Status refused = lists(keys).first;
    EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
    EXPECT_LT(Clock::now() - since, std::chrono::milliseconds(1'500));
  }
}

TEST(TlsCluster, VariablesOfTheEnvironment) {
  const auto own = serving::MakeTestCertificate("localhost");
  const std::string folder = testing::TempDir();
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder + name) << text;
    return folder + name;
  };
  std::map<std::string, std::string> said;
  const auto keys = [&] {
    return KeysOfEnvironment([&](const char* name) {
      const auto at = said.find(name);
      return at == said.end() ? nullptr : at->second.c_str();
    });
  };
  EXPECT_TRUE(keys().ok() && keys()->empty());
  said["HEADRACE_CLUSTER_CERTIFICATE"] = write("hr_tls_own", own.cert);
  EXPECT_TRUE(absl::IsInvalidArgument(keys().status())) << keys().status();
  EXPECT_TRUE(absl::StrContains(keys().status().message(),
                                "HEADRACE_CLUSTER_CERTIFICATE is set"));
  said["HEADRACE_CLUSTER_KEY"] = write("hr_tls_key", own.key);
  said["HEADRACE_CLUSTER_ROOTS"] = folder + "hr_tls_own";
  ASSERT_TRUE(keys().ok()) << keys().status();
  EXPECT_EQ(keys()->certificate, own.cert);
  EXPECT_EQ(keys()->key, own.key);
  EXPECT_EQ(keys()->roots, own.cert);
  EXPECT_EQ(keys()->client_roots, own.cert);
  said["HEADRACE_CLUSTER_ROOTS"] = folder + "hr_tls_key";
  EXPECT_TRUE(absl::IsInvalidArgument(keys().status())) << keys().status();
  said["HEADRACE_CLUSTER_ROOTS"] = folder + "hr_tls_nowhere";
  EXPECT_TRUE(absl::IsNotFound(keys().status())) << keys().status();
}

}  // namespace
}  // namespace headrace::distributed
