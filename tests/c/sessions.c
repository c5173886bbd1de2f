// Ten thousand sessions made and closed: memory stays what it was. With a
// number as its argument, the time of a run of one op instead, over so many
// runs.
#define _POSIX_C_SOURCE 199309L
#include <time.h>
#include <unistd.h>

#include "check.h"

// Pages that the process has in memory.
static long Resident(void) {
  FILE* f = fopen("/proc/self/statm", "r");
  CHECK(f != NULL);
  long all = 0, resident = 0;
  CHECK(fscanf(f, "%ld %ld", &all, &resident) == 2);
  fclose(f);
  return resident;
}

static void OneSession(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_Output y = First(Binary(g, "AddV2", "y", x, x, s));
  CHECK_OK(s);
  TF_Session* session = Session(g, s);
  const float value = 2;
  TF_Tensor* in = Floats(NULL, 0, &value);
  TF_Tensor* out = RunOne(session, x, in, y, s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 4.0f);
  TF_DeleteTensor(out);
  TF_DeleteTensor(in);
  TF_CloseSession(session, s);
  CHECK_OK(s);
  TF_DeleteSession(session, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
}

static double Seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void TimeRuns(int runs, TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_Output y = First(Binary(g, "AddV2", "y", x, x, s));
  TF_Session* session = Session(g, s);
  const float value = 2;
  TF_Tensor* in = Floats(NULL, 0, &value);
  double best = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    const double begin = Seconds();
    for (int i = 0; i < runs; ++i) {
      TF_DeleteTensor(RunOne(session, x, in, y, s));
    }
    const double took = (Seconds() - begin) / runs;
    if (took < best) best = took;
  }
  CHECK_OK(s);
  printf("TF_SessionRun of one op: %.3f us\n", best * 1e6);
  TF_DeleteTensor(in);
  TF_DeleteSession(session, s);
  TF_DeleteGraph(g);
}

int main(int argc, char** argv) {
  TF_Status* s = TF_NewStatus();
  if (argc > 1) {
    TimeRuns(atoi(argv[1]), s);
    TF_DeleteStatus(s);
    return 0;
  }
  for (int i = 0; i < 1000; ++i) OneSession(s);
  const long before = Resident();
  for (int i = 0; i < 9000; ++i) OneSession(s);
  const long grown = Resident() - before;
  // What allocators keep may move by some pages: a byte a session would be two,
  // a hundred bytes two hundred.
  printf("sessions: ok, %ld pages more\n", grown);
  // Sanitizers keep what is freed.
#if !defined(__SANITIZE_ADDRESS__) && !defined(_GLIBCXX_TSAN)
  CHECK(grown * sysconf(_SC_PAGESIZE) < 100 * 9000);
#endif
  TF_DeleteStatus(s);
  return 0;
}
