// This program once more, for tests of several processes.
#pragma once

#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

extern char** environ;

namespace headrace {

// Runs a disabled test ("Other.DISABLED_Serves") in a process of its own, whose
// environment is this one's with the variables ("NAME=value") before it.
inline pid_t StartTest(const std::string& test,
                       const std::vector<std::string>& variables) {
  const std::string filter = "--gtest_filter=" + test;
  std::vector<char*> environment, arguments;
  for (const std::string& v : variables) {
    environment.push_back(const_cast<char*>(v.c_str()));
  }
  for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
  environment.push_back(nullptr);
  for (const char* a :
       {"test", filter.c_str(), "--gtest_also_run_disabled_tests"}) {
    arguments.push_back(const_cast<char*>(a));
  }
  arguments.push_back(nullptr);
  pid_t pid = -1;
  if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(),
                  environment.data()) != 0) {
    std::abort();
  }
  return pid;
}

}  // namespace headrace
