// Servers of clusters: bytes that are none, their states, and sessions of this
// program and of another one that run on them. Called with a target, it is that
// other one.
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "cluster.h"

extern char** environ;

static void ExpectNone(Proto def, TF_Code code, const char* part,
                       TF_Status* s) {
  CHECK(TF_NewServer(def.bytes, def.length, s) == NULL);
  CHECK_ERROR(s, code, part);
}

static void BytesThatAreNone(TF_Status* s) {
  const Proto whole = ServerDef(&kAnyPort, 1, 0, "local", "grpc");
  int unreadable = 0;
  for (size_t cut = 0; cut < whole.length; ++cut) {
    // In memory of its own, so that reading on is seen.
    char* part = malloc(cut + 1);
    CHECK(part != NULL);
    memcpy(part, whole.bytes, cut);
    CHECK(TF_NewServer(part, cut, s) == NULL);
    free(part);
    if (TF_GetCode(s) == TF_INVALID_ARGUMENT) {
      CHECK_ERROR(s, TF_INVALID_ARGUMENT, "into a ServerDef protocol buffer");
      ++unreadable;
    } else {  // whole fields, with no protocol yet
      CHECK_ERROR(s, TF_NOT_FOUND, "No server factory registered");
    }
  }
  CHECK(unreadable == (int)whole.length - 4);
  CHECK(TF_NewServer("\xff\xff", 2, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "into a ServerDef protocol buffer");
  ExpectNone(ServerDef(&kAnyPort, 1, 0, "local", NULL), TF_NOT_FOUND,
             "available server factories are: [ GRPC_SERVER ]", s);
  ExpectNone(ServerDef(&kAnyPort, 1, 0, "local", "grpc+x"), TF_NOT_FOUND,
             "No server factory registered", s);
  ExpectNone(ServerDef(&kAnyPort, 1, 0, "no", "grpc"), TF_INTERNAL,
             "Job \"no\" was not defined in cluster", s);
  ExpectNone(ServerDef(&kAnyPort, 1, 4, "local", "grpc"), TF_INTERNAL,
             "Task 4 was not defined in job \"local\"", s);
  const char* const no_port = "localhost:x";
  ExpectNone(ServerDef(&no_port, 1, 0, "local", "grpc"), TF_INVALID_ARGUMENT,
             "Could not parse port for local server from \"localhost:x\"", s);
}

static void* Joins(void* server) {
  TF_Status* s = TF_NewStatus();
  TF_ServerJoin(server, s);
  CHECK_OK(s);
  TF_DeleteStatus(s);
  return NULL;
}

static void States(TF_Status* s) {
  const Proto def = ServerDef(&kAnyPort, 1, 0, "local", "grpc");
  TF_Server* server = TF_NewServer(def.bytes, def.length, s);
  CHECK_OK(s);
  CHECK(strncmp(TF_ServerTarget(server), "grpc://localhost:", 17) == 0);
  CHECK(atoi(TF_ServerTarget(server) + 17) > 0);
  TF_ServerStop(server, s);
  CHECK_OK(s);
  TF_ServerStart(server, s);
  CHECK_ERROR(s, TF_FAILED_PRECONDITION, "Server has stopped.");
  TF_ServerJoin(server, s);
  CHECK_OK(s);
  TF_DeleteServer(server);
  // Joined before it was started: nobody is waited for.
  server = TF_NewServer(def.bytes, def.length, s);
  CHECK_OK(s);
  TF_ServerJoin(server, s);
  CHECK_OK(s);
  TF_ServerStart(server, s);
  CHECK_ERROR(s, TF_FAILED_PRECONDITION, "Server has stopped.");
  TF_DeleteServer(server);
  // Started twice, and stopped below somebody who waits.
  server = Started(def, s);
  TF_ServerStart(server, s);
  CHECK_OK(s);
  pthread_t joins;
  CHECK(pthread_create(&joins, NULL, Joins, server) == 0);
  TF_ServerStop(server, s);
  CHECK_OK(s);
  CHECK(pthread_join(joins, NULL) == 0);
  TF_ServerStop(server, s);
  CHECK_OK(s);
  TF_DeleteServer(server);
  TF_DeleteServer(NULL);
}

// --- Sessions.

static TF_Session* SessionAt(const char* target, TF_Graph* g, TF_Status* s) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, target);
  TF_Session* session = TF_NewSession(g, options, s);
  TF_DeleteSessionOptions(options);
  return session;
}

static void Targets(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  CHECK(SessionAt("grpc://", g, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Could not interpret \"\" as a host-port pair.");
  CHECK(SessionAt("grpc://localhost", g, s) == NULL);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT,
              "Could not interpret \"localhost\" as a host-port pair.");
  CHECK(SessionAt("foo", g, s) == NULL);
  CHECK_ERROR(s, TF_NOT_FOUND, "No session factory registered");
  // Nobody is called yet, nor by the end.
  TF_Session* session = SessionAt("grpc://localhost:1", g, s);
  CHECK_OK(s);
  TF_CloseSession(session, s);
  CHECK_OK(s);
  TF_DeleteSession(session, s);
  CHECK_OK(s);
  TF_DeleteGraph(g);
}

// A variable "shared" of the server's, with an assignment of a fed value and a
// reading, and what a session does with them.
typedef struct {
  TF_Graph* graph;
  TF_Output value, read;
  TF_Operation* assign;
  TF_Session* session;
} Client;

static Client NewClient(const char* target, TF_Status* s) {
  Client c;
  c.graph = TF_NewGraph();
  c.value = First(Placeholder(c.graph, "value", TF_FLOAT, s));
  TF_OperationDescription* d = TF_NewOperation(c.graph, "VarHandleOp", "v");
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_SetAttrShape(d, "shape", NULL, 0);
  TF_SetAttrString(d, "shared_name", "shared", 6);
  const TF_Output v = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  c.assign = Binary(c.graph, "AssignVariableOp", "assign", v, c.value, s);
  d = TF_NewOperation(c.graph, "ReadVariableOp", "read");
  TF_AddInput(d, v);
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  c.read = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  c.session = SessionAt(target, c.graph, s);
  CHECK_OK(s);
  return c;
}

static void Assign(const Client* c, float value, TF_Status* s) {
  TF_Tensor* fed = Floats(NULL, 0, &value);
  const TF_Operation* target = c->assign;
  TF_SessionRun(c->session, NULL, &c->value, &fed, 1, NULL, NULL, 0, &target, 1,
                NULL, s);
  TF_DeleteTensor(fed);
}

static float Fetch(const Client* c, TF_Output what, TF_Status* s) {
  TF_Tensor* out = NULL;
  TF_SessionRun(c->session, NULL, NULL, NULL, 0, &what, &out, 1, NULL, 0, NULL,
                s);
  if (out == NULL) return 0;
  const float value = *(float*)TF_TensorData(out);
  TF_DeleteTensor(out);
  return value;
}

static void DeleteClient(Client c, TF_Status* s) {
  TF_CloseSession(c.session, s);
  CHECK_OK(s);
  TF_DeleteSession(c.session, s);
  CHECK_OK(s);
  TF_DeleteGraph(c.graph);
}

static void Errors(Client* c, TF_Status* s) {
  // A feed of another type, and one that is missing.
  TF_Tensor* fed = Int32(1);
  TF_Tensor* out = NULL;
  TF_SessionRun(c->session, NULL, &c->value, &fed, 1, &c->value, &out, 1, NULL,
                0, NULL, s);
  CHECK(TF_GetCode(s) == TF_INVALID_ARGUMENT && out == NULL);
  TF_DeleteTensor(fed);
  const TF_Operation* target = c->assign;
  TF_SessionRun(c->session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target, 1,
                NULL, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "value");
  TF_SessionRun(c->session, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, NULL,
                s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "at least one target");
  const TF_Buffer junk = {"\xff\xff", 2, NULL};
  TF_SessionRun(c->session, &junk, NULL, NULL, 0, &c->read, &out, 1, NULL, 0,
                NULL, s);
  CHECK_ERROR(s, TF_INVALID_ARGUMENT, "RunOptions");
}

// A run of a queue that nobody fills ends at its time.
static void TimesOut(Client* c, TF_Status* s) {
  const TF_DataType type = TF_FLOAT;
  TF_OperationDescription* d = TF_NewOperation(c->graph, "FIFOQueueV2", "q");
  TF_SetAttrTypeList(d, "component_types", &type, 1);
  const TF_Output queue = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  d = TF_NewOperation(c->graph, "QueueDequeueV2", "take");
  TF_AddInput(d, queue);
  TF_SetAttrTypeList(d, "component_types", &type, 1);
  const TF_Output taken = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  TF_Buffer* options = TF_NewBufferFromString("\x10\x64", 2);  // 100 ms
  TF_Tensor* out = NULL;
  TF_SessionRun(c->session, options, NULL, NULL, 0, &taken, &out, 1, NULL, 0,
                NULL, s);
  CHECK(TF_GetCode(s) == TF_DEADLINE_EXCEEDED && out == NULL);
  TF_DeleteBuffer(options);
}

static void Parts(Client* c, TF_Status* s) {
  TF_Output b = First(Placeholder(c->graph, "b", TF_FLOAT, s));
  TF_Output twice =
      First(Binary(c->graph, "AddV2", "twice", c->value, c->value, s));
  TF_Output sum = First(Binary(c->graph, "AddV2", "sum", twice, b, s));
  CHECK_OK(s);
  const TF_Output feeds[] = {c->value, b}, fetches[] = {twice, sum};
  const char* handle = NULL;
  TF_SessionPRunSetup(c->session, feeds, 2, fetches, 2, NULL, 0, &handle, s);
  CHECK_OK(s);
  const float values[] = {3, 10}, wanted[] = {6, 16};
  for (int i = 0; i < 2; ++i) {
    TF_Tensor* fed = Floats(NULL, 0, &values[i]);
    TF_Tensor* out = NULL;
    TF_SessionPRun(c->session, handle, &feeds[i], &fed, 1, &fetches[i], &out, 1,
                   NULL, 0, s);
    CHECK_OK(s);
    CHECK(*(float*)TF_TensorData(out) == wanted[i]);
    TF_DeleteTensor(out);
    TF_DeleteTensor(fed);
  }
  TF_DeletePRunHandle(handle);
}

static void Devices(const Client* c, int tasks, TF_Status* s) {
  TF_DeviceList* list = TF_SessionListDevices(c->session, s);
  CHECK_OK(s);
  int processors = 0;
  for (int i = 0; i < TF_DeviceListCount(list); ++i) {
    const char* name = TF_DeviceListName(list, i, s);
    CHECK(strncmp(name, "/job:local/replica:0/task:", 26) == 0);
    processors += strcmp(TF_DeviceListType(list, i, s), "CPU") == 0;
    CHECK(TF_DeviceListIncarnation(list, i, s) != 0);
    CHECK_OK(s);
  }
  CHECK(processors == tasks);
  TF_DeleteDeviceList(list);
}

static void Changes(Client* c, TF_Status* s) {
  // What was not sent yet may be changed, what was may not.
  TF_Operation* later =
      Binary(c->graph, "AddV2", "later", c->read, c->read, s);
  CHECK_OK(s);
  TF_SetRequestedDevice(c->graph, later, "/job:local/task:0");
  CHECK(Fetch(c, First(later), s) == 84);
  CHECK_OK(s);
  TF_SetRequestedDevice(c->graph, later, "");
  Fetch(c, First(later), s);
  CHECK_ERROR(s, TF_FAILED_PRECONDITION, "later");
}

static void RunProgram(const char* program, const char* target) {
  char *arguments[] = {(char*)program, (char*)target, NULL};
  pid_t child;
  CHECK(posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0);
  int end = 0;
  CHECK(waitpid(child, &end, 0) == child);
  CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
}

// The other program: it finds the variable at 42, and leaves it at 43.
static void OtherProgram(const char* target, TF_Status* s) {
  Client c = NewClient(target, s);
  CHECK(Fetch(&c, c.read, s) == 42);
  CHECK_OK(s);
  Assign(&c, 43, s);
  CHECK_OK(s);
  // What the graph gains between runs is sent along.
  TF_Output more = First(Binary(c.graph, "AddV2", "more", c.read, c.read, s));
  CHECK_OK(s);
  CHECK(Fetch(&c, more, s) == 86);
  CHECK_OK(s);
  Errors(&c, s);
  TimesOut(&c, s);
  Parts(&c, s);
  Devices(&c, 1, s);
  DeleteClient(c, s);
}

static void* AssignsInThread(void* target) {
  TF_Status* s = TF_NewStatus();
  Client c = NewClient(target, s);
  Assign(&c, 42, s);
  CHECK_OK(s);
  DeleteClient(c, s);
  TF_DeleteStatus(s);
  return NULL;
}

static void OneTask(const char* program, TF_Status* s) {
  TF_Server* server = Started(ServerDef(&kAnyPort, 1, 0, "local", "grpc"), s);
  char target[64];
  snprintf(target, sizeof target, "%s", TF_ServerTarget(server));
  Client c = NewClient(target, s);
  Fetch(&c, c.read, s);  // nobody gave it a value
  CHECK_ERROR(s, TF_FAILED_PRECONDITION, "");
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, AssignsInThread, target) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(Fetch(&c, c.read, s) == 42);
  CHECK_OK(s);
  Changes(&c, s);
  RunProgram(program, target);
  TF_CloseSession(c.session, s);
  CHECK_OK(s);
  Fetch(&c, c.read, s);
  CHECK_ERROR(s, TF_CANCELLED, "Session has been closed.");
  DeleteClient(c, s);
  c = NewClient(target, s);
  CHECK(Fetch(&c, c.read, s) == 43);
  CHECK_OK(s);
  Errors(&c, s);
  TimesOut(&c, s);
  Parts(&c, s);
  // Containers are forgotten, with what is in them, and sessions are closed.
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, target);
  TF_Reset(options, NULL, 0, s);
  CHECK_OK(s);
  TF_DeleteSessionOptions(options);
  Fetch(&c, c.read, s);
  CHECK_ERROR(s, TF_ABORTED, "is not found");
  TF_CloseSession(c.session, s);
  CHECK_ERROR(s, TF_ABORTED, "is not found");
  TF_DeleteSession(c.session, s);
  CHECK_OK(s);
  TF_DeleteGraph(c.graph);
  c = NewClient(target, s);
  Fetch(&c, c.read, s);
  CHECK_ERROR(s, TF_FAILED_PRECONDITION, "");
  DeleteClient(c, s);
  TF_DeleteServer(server);
}

// --- Two tasks.

static void TwoTasks(TF_Status* s) {
  char texts[2][32];
  const char* addresses[2] = {texts[0], texts[1]};
  for (int i = 0; i < 2; ++i) {
    snprintf(texts[i], sizeof texts[i], "127.0.0.1:%d", FreePort());
  }
  TF_Server* servers[2];
  for (int i = 0; i < 2; ++i) {
    servers[i] = Started(ServerDef(addresses, 2, i, "local", "grpc"), s);
  }
  TF_Graph* g = TF_NewGraph();
  TF_Output x = First(Placeholder(g, "x", TF_FLOAT, s));
  TF_OperationDescription* d = TF_NewOperation(g, "AddV2", "there");
  TF_AddInput(d, x);
  TF_AddInput(d, x);
  TF_SetDevice(d, "/job:local/task:1");
  TF_Output there = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  d = TF_NewOperation(g, "Mul", "here");
  TF_AddInput(d, there);
  TF_AddInput(d, there);
  TF_SetDevice(d, "/job:local/task:0");
  TF_Output here = First(TF_FinishOperation(d, s));
  CHECK_OK(s);
  Client c = {.graph = g};
  c.session = SessionAt(TF_ServerTarget(servers[0]), g, s);
  CHECK_OK(s);
  const float three = 3;
  TF_Tensor* in = Floats(NULL, 0, &three);
  TF_Tensor* out = RunOne(c.session, x, in, here, s);
  CHECK_OK(s);
  CHECK(*(float*)TF_TensorData(out) == 36);
  TF_DeleteTensor(out);
  Devices(&c, 2, s);
  // The other task goes: the run says so.
  TF_DeleteServer(servers[1]);
  out = RunOne(c.session, x, in, here, s);
  CHECK(out == NULL && TF_GetCode(s) != TF_OK);
  TF_DeleteTensor(in);
  DeleteClient(c, s);
  TF_DeleteServer(servers[0]);
}

int main(int argc, char** argv) {
  TF_Status* s = TF_NewStatus();
  if (argc > 1) {
    OtherProgram(argv[1], s);
  } else {
    BytesThatAreNone(s);
    States(s);
    Targets(s);
    OneTask(argv[0], s);
    TwoTasks(s);
    printf("servers: ok\n");
  }
  TF_DeleteStatus(s);
  return 0;
}
