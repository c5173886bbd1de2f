#include "distributed/coordination/config.h"
#include "distributed/coordination/service.h"
#include "distributed/test_call.h"
#include "distributed/wire/methods.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;
using tensorflow::CoordinationServiceConfig;

const std::set<TaskId> kThree = {{"p", 0}, {"w", 0}, {"w", 1}};

Status ErrorOf(const CoordinationServiceConfig& config) {
  return ReadCoordinationConfig(config, kThree).status();
}

TEST(CoordinationConfigTest, SaysWhoComesAndHowLongOthersWait) {
  CoordinationServiceConfig config;
  auto read = ReadCoordinationConfig(config, kThree);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tasks, kThree);
  EXPECT_FALSE(read->leader || read->silence || read->patience);
  EXPECT_FALSE(read->may_come_again);
  config.set_service_type("standalone");
  config.set_service_leader("/job:w/task:1");
  config.set_heartbeat_timeout_in_ms(5000);
  config.set_cluster_register_timeout_in_ms(INT64_MAX);
  auto& job = *config.add_coordinated_job_list();
  job.set_name("w");
  job.set_num_tasks(2);
  config.add_recoverable_jobs("w");
  config.set_allow_new_incarnation_to_reconnect(true);
  read = ReadCoordinationConfig(config, kThree);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->tasks, (std::set<TaskId>{{"w", 0}, {"w", 1}}));
  EXPECT_EQ(read->leader, DeviceName::OfTask("w", 1));
  EXPECT_EQ(read->silence, milliseconds(5000));
  EXPECT_EQ(read->patience, std::chrono::hours(24 * 365));
  EXPECT_EQ(read->recoverable, std::set<std::string>{"w"});
  EXPECT_TRUE(read->may_come_again);
}

TEST(CoordinationConfigTest, NamesTheFieldThatCannotBe) {
  CoordinationServiceConfig config;
  config.set_heartbeat_timeout_in_ms(-1);
  EXPECT_EQ(ErrorOf(config),
            InvalidArgument("experimental.coordination_config.heartbeat_"
                            "timeout_in_ms is -1: no time is negative"));
  config = {};
  config.set_service_type("other");
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(config)));
  for (const char* leader : {"w", "/job:w", "/job:w/task:2", "/job:x/task:0"}) {
    config = {};
    config.set_service_leader(leader);
    EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(config))) << leader;
  }
  for (const int tasks : {-1, 3}) {
    config = {};
    auto& job = *config.add_coordinated_job_list();
    job.set_name("w");
    job.set_num_tasks(tasks);
    EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf(config))) << tasks;
  }
  for (const char* field :
       {"shutdown_barrier_timeout_in_ms", "cluster_register_with_barrier",
        "enable_health_check", "force_disable"}) {
    config = {};
    const auto* f = config.GetDescriptor()->FindFieldByName(field);
    if (f->cpp_type() == f->CPPTYPE_BOOL) {
      config.GetReflection()->SetBool(&config, f, true);
    } else {
      config.GetReflection()->SetInt64(&config, f, 1);
    }
    const Status s = ErrorOf(config);
    EXPECT_TRUE(absl::IsUnimplemented(s));
    EXPECT_NE(s.message().find(field), StringView::npos) << s;
  }
}

// A service of the three tasks, called without a transport.
class ConfiguredService {
 public:
  explicit ConfiguredService(CoordinationOptions options) {
    options.tasks = kThree;
    options.lost = [this](const Status& s) { lost_ = s; };
    service_ = std::make_shared<CoordinationService>(std::move(options));
    methods_ = CoordinationService::Methods(service_);
  }
  ~ConfiguredService() { service_->Stop(Cancelled("over")); }

  Status Register(int i, uint64_t incarnation, bool recoverable = false) {
    tensorflow::RegisterTaskRequest request;
    *request.mutable_source_task() = TaskOf({"w", i});
    request.mutable_source_task()->set_recoverable(recoverable);
    request.set_incarnation(incarnation);
    return Ask(coordination::kRegisterTask, request);
  }
  Status Beat(int i, uint64_t incarnation) {
    tensorflow::HeartbeatRequest request;
    *request.mutable_source_task() = TaskOf({"w", i});
    request.set_incarnation(incarnation);
    return Ask(coordination::kHeartbeat, request);
  }
  Status Report(int i) {
    tensorflow::ReportErrorToServiceRequest request;
    *request.mutable_error_origin() = TaskOf({"w", i});
    request.set_error_code(13);
    request.set_error_message("boom");
    return Ask(coordination::kReportErrorToService, request);
  }
  Status Hear() {
    tensorflow::ReportErrorToTaskRequest request;
    request.set_error_code(13);
    request.set_error_message("boom");
    return Ask(coordination::kReportErrorToTask, request);
  }
  const Status& lost() const { return lost_; }

 private:
  template <typename Request>
  Status Ask(const RemoteMethod& method, const Request& request) {
    return StatusFrom(
        StartCall(methods_, method.path, request.SerializeAsString()));
  }

  Status lost_;
  std::shared_ptr<CoordinationService> service_;
  Methods methods_;
};

TEST(CoordinationConfigTest, ErrorsOfRecoverableTasksAreTheirOwn) {
  CoordinationOptions options;
  options.recoverable = {"w"};
  ConfiguredService by_job(options);
  ConfiguredService by_task((CoordinationOptions()));
  for (ConfiguredService* s : {&by_job, &by_task}) {
    EXPECT_EQ(s->Register(0, 1), OkStatus());
    EXPECT_EQ(s->Register(1, 2, s == &by_task), OkStatus());
    EXPECT_EQ(s->Report(1), OkStatus());
    EXPECT_EQ(s->Beat(0, 1), OkStatus());
    EXPECT_EQ(s->lost(), OkStatus());
    EXPECT_TRUE(absl::IsAborted(s->Beat(1, 2)));
    EXPECT_TRUE(absl::IsAborted(s->Register(1, 3)));
  }
  EXPECT_EQ(by_task.Report(0), OkStatus());
  EXPECT_TRUE(absl::IsInternal(by_task.lost()));
}

TEST(CoordinationConfigTest, WhoWasSilentMayComeAgain) {
  CoordinationOptions options;
  options.silence = milliseconds(0);
  for (const bool may : {false, true}) {
    options.may_come_again = may;
    ConfiguredService s(options);
    EXPECT_EQ(s.Register(0, 1), OkStatus());
    EXPECT_EQ(s.Register(1, 2), OkStatus());
    s.Beat(0, 1).IgnoreError();  // which notices the silence of task 1
    EXPECT_TRUE(absl::IsUnavailable(s.lost()));
    EXPECT_EQ(s.Register(1, 3).code(),
              may ? absl::StatusCode::kOk : absl::StatusCode::kAborted);
    // An error that it told of itself stays one.
    if (!may) continue;
    EXPECT_EQ(s.Report(1), OkStatus());
    EXPECT_TRUE(absl::IsAborted(s.Register(1, 4)));
  }
}

TEST(CoordinationConfigTest, WhoDoesNotLeadHearsErrorsAlone) {
  CoordinationOptions options;
  options.leads = false;
  ConfiguredService s(options);
  EXPECT_EQ(s.Register(0, 1), Internal("Coordination service is not enabled."));
  EXPECT_EQ(s.Hear(), OkStatus());
  EXPECT_EQ(s.lost(), Internal("boom"));
}

}  // namespace
}  // namespace headrace::distributed
