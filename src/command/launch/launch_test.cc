#include "command/launch/launch.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "gtest/gtest.h"

namespace headrace::command {
namespace {

std::string ConfigOf(const TaskProgram& task) {
  for (const std::string& e : task.environment) {
    if (e.starts_with("TF_CONFIG=")) return e.substr(10);
  }
  return "";
}

TEST(Launch, IsAskedForBeforeTheProgram) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"-n", "2", "a.py"},
        {"-n2", "a.py"},
        {"--workers=2", "a.py"},
        {"--ps", "1", "--workers", "2", "a.py"}}) {
    EXPECT_TRUE(AsksToLaunch(args)) << args[0];
  }
  for (const std::vector<std::string>& args : {std::vector<std::string>{},
                                               {"model", "-n", "2"},
                                               {"--json", "model"},
                                               {"--logs", "-n", "model"},
                                               {"--", "-n"}}) {
    EXPECT_FALSE(AsksToLaunch(args)) << (args.empty() ? "" : args[0]);
  }
}

TEST(Launch, EachTaskIsToldItsPlace) {
  const auto plan =
      PlanLaunch({"-n", "2", "--ps=1", "--chief", "--evaluator", "--port_base",
                  "7000", "--restarts", "3", "a.py", "-n", "9"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->supervision.restarts, 3);
  std::vector<std::string> names;
  for (const TaskProgram& task : plan->tasks) {
    names.push_back(task.name);
    EXPECT_EQ(task.argv.size(), 4u);
    EXPECT_EQ(task.argv[1], "a.py");
    EXPECT_EQ(task.argv[2], "-n");
    EXPECT_EQ(task.serves, task.name == "ps 0");
  }
  EXPECT_EQ(names, (std::vector<std::string>{"chief 0", "worker 0", "worker 1",
                                             "ps 0", "evaluator 0"}));
  std::string config = ConfigOf(plan->tasks[2]);
  std::erase(config, ' ');
  EXPECT_EQ(config,
            R"({"cluster":{"chief":["127.0.0.1:7000"],"worker":)"
            R"(["127.0.0.1:7001","127.0.0.1:7002"],"ps":["127.0.0.1:7003"]},)"
            R"("task":{"type":"worker","index":1}})");
}

TEST(Launch, WhatCannotBeIsAnErrorOfTheCall) {
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"-n", "0", "a.py"},
        {"-n", "many", "a.py"},
        {"-n", "2"},
        {"-n"},
        {"-n", "2", "--input", "x=1", "a.py"},
        {"-n", "2", "--ps", "-1", "a.py"},
        {"-n", "2", "--port_base", "65535", "a.py"},
        {"-n", "2", "--grace", "long", "a.py"}}) {
    EXPECT_TRUE(IsUsageError(PlanLaunch(args).status())) << args.back();
  }
}

// Programs of the shell.
class RunTasksTest : public testing::Test {
 protected:
  TaskProgram Task(const std::string& name, const std::string& script) {
    TaskProgram task;
    task.name = name;
    task.argv = {"/bin/sh", "-c", script};
    task.environment = {"PATH=/usr/bin:/bin"};
    return task;
  }
  int Run(const std::vector<TaskProgram>& tasks) {
    const auto code = RunTasks(tasks, supervision_, out_, err_);
    EXPECT_TRUE(code.ok()) << code.status();
    return code.ok() ? *code : -1;
  }

  Supervision supervision_;
  Output out_, err_;
};

TEST_F(RunTasksTest, LinesComeBehindTheNameOfTheirTask) {
  EXPECT_EQ(Run({Task("a", "echo one; echo two >&2; printf three")}), 0);
  EXPECT_EQ(out_.text(), "[a] one\n[a] three\n");
  EXPECT_EQ(err_.text(), "[a] two\n");
}

TEST_F(RunTasksTest, TheFirstToFailEndsTheOthers) {
  EXPECT_EQ(Run({Task("a", "exit 7"), Task("b", "sleep 100")}), 7);
  EXPECT_EQ(err_.text(),
            "headrace run: a ended with 7; the other tasks are ended\n");
  EXPECT_EQ(Run({Task("a", "kill -9 $$"), Task("b", "sleep 100")}), 137);
}

TEST_F(RunTasksTest, ServersEndWithTheLast) {
  TaskProgram server = Task("ps", "sleep 100");
  server.serves = true;
  EXPECT_EQ(Run({server, Task("a", "exit 0")}), 0);
  server = Task("ps", "exit 0");
  server.serves = true;
  EXPECT_EQ(Run({server, Task("a", "sleep 100")}), 1);
}

// A worker that waits for a coordinator is no parameter server by its name.
TEST_F(RunTasksTest, TasksThatSayThatTheyServeEndWithTheLast) {
  const std::string serve =
      "printf s >/dev/fd/${HEADRACE_LAUNCHER%%:*}; sleep 100";
  EXPECT_EQ(Run({Task("a", serve), Task("b", serve), Task("c", "sleep 0.2")}),
            0);
  EXPECT_EQ(Run({Task("a", serve), Task("c", "exit 6")}), 6);
  // Who ends before it says so has ended as others do.
  EXPECT_EQ(Run({Task("a", "exit 0"), Task("b", "sleep 0.2; echo b")}), 0);
  EXPECT_EQ(out_.text(), "[b] b\n");
}

// They may serve who is no task of theirs.
TEST_F(RunTasksTest, TasksThatAllServeGoOn) {
  const std::string serve =
      "printf s >/dev/fd/${HEADRACE_LAUNCHER%%:*}; sleep ";
  EXPECT_EQ(Run({Task("a", serve + "0.5; echo a"), Task("b", serve + "0.3")}),
            0);
  EXPECT_EQ(out_.text(), "");  // it is ended when the first has
  std::thread sender([] {
    usleep(300'000);
    kill(getpid(), SIGTERM);
  });
  EXPECT_EQ(Run({Task("a", serve + "100"), Task("b", serve + "100")}),
            128 + SIGTERM);
  sender.join();
}

TEST_F(RunTasksTest, WhoDoesNotEndIsKilled) {
  supervision_.grace_seconds = 0.1;
  EXPECT_EQ(Run({Task("a", "trap '' TERM; while true; do sleep 0.1; done"),
                 Task("b", "sleep 0.3; exit 5")}),
            5);
}

TEST_F(RunTasksTest, FailedTasksAreStartedAgain) {
  const std::string mark = testing::TempDir() + "started_again";
  unlink(mark.c_str());
  supervision_.restarts = 1;
  EXPECT_EQ(Run({Task("a", "test -e " + mark + " || { touch " + mark +
                               "; exit 3; }; echo again")}),
            0);
  EXPECT_EQ(out_.text(), "[a] again\n");
  EXPECT_EQ(err_.text(),
            "headrace run: a ended with 3; it is started again (1 of 1)\n");
  EXPECT_EQ(Run({Task("a", "exit 4")}), 4);
}

TEST_F(RunTasksTest, SignalsReachTheTasks) {
  std::thread sender([] {
    usleep(300'000);
    kill(getpid(), SIGTERM);
  });
  EXPECT_EQ(Run({Task("a",
                      "trap 'echo asked; exit 0' TERM; echo ready;"
                      "while true; do sleep 0.05; done")}),
            128 + SIGTERM);
  sender.join();
  EXPECT_EQ(out_.text(), "[a] ready\n[a] asked\n");
}

TEST_F(RunTasksTest, ProgramsThatAreNotThere) {
  TaskProgram task = Task("a", "");
  task.argv = {"/nowhere/program"};
  const auto code = RunTasks({Task("b", "sleep 100"), task}, {}, out_, err_);
  EXPECT_TRUE(absl::IsNotFound(code.status())) << code.status();
}

TEST_F(RunTasksTest, LogsTakeBothFiles) {
  TaskProgram task = Task("a", "echo one; echo two >&2");
  task.log = testing::TempDir() + "task.log";
  EXPECT_EQ(Run({task}), 0);
  EXPECT_EQ(out_.text(), "");
  std::ifstream file(task.log);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}),
            "one\ntwo\n");
}

TEST_F(RunTasksTest, LongLinesComeInPieces) {
  EXPECT_EQ(Run({Task("a", "head -c 200000 /dev/zero | tr '\\0' x")}), 0);
  EXPECT_GT(out_.text().size(), 200'000u);
}

}  // namespace
}  // namespace headrace::command
