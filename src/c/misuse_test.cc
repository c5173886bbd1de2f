// What TensorFlow's library crashes on, or leaves undefined, is an error here.
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/core/protobuf/tensorflow_server.pb.h"

namespace {

class CApiMisuse : public testing::Test {
 protected:
  ~CApiMisuse() override {
    TF_DeleteGraph(graph_);
    TF_DeleteStatus(status_);
  }
  TF_Operation* AddPlaceholder(const char* name, TF_DataType type) {
    TF_OperationDescription* d = TF_NewOperation(graph_, "Placeholder", name);
    TF_SetAttrType(d, "dtype", type);
    return TF_FinishOperation(d, status_);
  }
  void ExpectError(TF_Code code, const char* part = "") {
    EXPECT_EQ(TF_GetCode(status_), code) << TF_Message(status_);
    EXPECT_NE(std::string(TF_Message(status_)).find(part), std::string::npos)
        << TF_Message(status_);
    TF_SetStatus(status_, TF_OK, "");
  }

  TF_Status* status_ = TF_NewStatus();
  TF_Graph* graph_ = TF_NewGraph();
};

TEST_F(CApiMisuse, EveryByteIsABool) {
  const int64_t two = 2;
  TF_Tensor* t = TF_AllocateTensor(TF_BOOL, &two, 1, 2);
  std::memcpy(TF_TensorData(t), "\0\2", 2);
  TFE_TensorHandle* h = TFE_NewTensorHandle(t, status_);
  ASSERT_EQ(TF_GetCode(status_), TF_OK) << TF_Message(status_);
  TF_Tensor* read = TFE_TensorHandleResolve(h, status_);
  EXPECT_EQ(std::memcmp(TF_TensorData(read), "\0\1", 2), 0);
  // The caller's memory stays as it is.
  EXPECT_EQ(std::memcmp(TF_TensorData(t), "\0\2", 2), 0);
  TF_DeleteTensor(read);
  TFE_DeleteTensorHandle(h);
  TF_DeleteTensor(t);
}

TEST_F(CApiMisuse, NullsAreErrors) {
  EXPECT_EQ(TF_FinishOperation(nullptr, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  EXPECT_EQ(TF_NewSession(nullptr, nullptr, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_GraphToGraphDef(nullptr, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_GraphToGraphDef(graph_, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_GraphImportGraphDef(graph_, nullptr, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_SessionRun(nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0,
                nullptr, 0, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_LoadSessionFromSavedModel(nullptr, nullptr, nullptr, nullptr, 0, nullptr,
                               nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  EXPECT_EQ(TFE_NewContext(nullptr, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TFE_Execute(nullptr, nullptr, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_FunctionToFunctionDef(nullptr, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_DeleteGraph(nullptr);
  TF_DeleteTensor(nullptr);
  TF_DeleteSession(nullptr, status_);
  EXPECT_EQ(TF_GetCode(status_), TF_OK);
}

TEST_F(CApiMisuse, IndicesAreChecked) {
  TF_Operation* x = AddPlaceholder("x", TF_FLOAT);
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(TF_GraphGetTensorNumDims(graph_, {x, 7}, status_), -1);
  ExpectError(TF_OUT_OF_RANGE, "does not have output 7");
  EXPECT_EQ(TF_OperationOutputType({x, -1}), static_cast<TF_DataType>(0));
  EXPECT_EQ(TF_OperationInput({x, 0}).oper, nullptr);
  TF_OperationDescription* d = TF_NewOperation(graph_, "Neg", "neg");
  TF_AddInput(d, {x, 3});
  EXPECT_EQ(TF_FinishOperation(d, status_), nullptr);
  ExpectError(TF_OUT_OF_RANGE, "does not have output 3");
  d = TF_NewOperation(graph_, "AddN", "addn");
  TF_AddInputList(d, nullptr, -1);
  EXPECT_EQ(TF_FinishOperation(d, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT);
}

TEST_F(CApiMisuse, OperationsAreOfOneGraph) {
  TF_Operation* x = AddPlaceholder("x", TF_FLOAT);
  TF_Graph* other = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(other, "Neg", "neg");
  TF_AddInput(d, {x, 0});
  EXPECT_EQ(TF_FinishOperation(d, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "is not of this graph");
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(other, options, status_);
  TF_Output out{x, 0};
  TF_Tensor* result = nullptr;
  TF_SessionRun(session, nullptr, nullptr, nullptr, 0, &out, &result, 1,
                nullptr, 0, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "is not of this graph");
  TF_DeleteSession(session, status_);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(other);
}

TEST_F(CApiMisuse, ControlInputsOfAnotherGraphStay) {
  TF_Operation* x = AddPlaceholder("x", TF_FLOAT);
  TF_Operation* y = AddPlaceholder("y", TF_FLOAT);
  TF_AddOperationControlInput(graph_, y, x);
  TF_Graph* other = TF_NewGraph();
  TF_RemoveAllControlInputs(other, y);
  TF_RemoveAllControlInputs(nullptr, y);
  TF_RemoveAllControlInputs(graph_, nullptr);
  EXPECT_EQ(TF_OperationNumControlInputs(y), 1);
  TF_RemoveAllControlInputs(graph_, y);
  EXPECT_EQ(TF_OperationNumControlInputs(y), 0);
  TF_DeleteGraph(other);
}

TEST_F(CApiMisuse, FeedsAreChecked) {
  TF_Operation* x = AddPlaceholder("x", TF_FLOAT);
  TF_OperationDescription* d = TF_NewOperation(graph_, "Neg", "neg");
  TF_AddInput(d, {x, 0});
  TF_Output neg{TF_FinishOperation(d, status_), 0};
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph_, options, status_);
  TF_Output feed{x, 0};
  TF_Tensor* value = TF_AllocateTensor(TF_INT32, nullptr, 0, 4);
  TF_Tensor* result = nullptr;
  TF_SessionRun(session, nullptr, &feed, &value, 1, &neg, &result, 1, nullptr,
                0, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT,
              "Expects arg[0] to be float but int32 is provided");
  TF_Tensor* none = nullptr;
  TF_SessionRun(session, nullptr, &feed, &none, 1, &neg, &result, 1, nullptr, 0,
                nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "null");
  TF_SessionRun(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0,
                nullptr, 0, nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "at least one target");
  TF_DeleteTensor(value);
  TF_DeleteSession(session, status_);
  TF_DeleteSessionOptions(options);
}

// The bytes of one type are never read as another's: whoever reads the node was
// made for what it gave.
TEST_F(CApiMisuse, ChangedAttributesFitTheReaders) {
  TF_Operation* x = AddPlaceholder("x", TF_FLOAT);
  TF_OperationDescription* d = TF_NewOperation(graph_, "Cast", "cast");
  TF_AddInput(d, {x, 0});
  TF_SetAttrType(d, "DstT", TF_DOUBLE);
  TF_Operation* cast = TF_FinishOperation(d, status_);
  ASSERT_EQ(TF_GetCode(status_), TF_OK) << TF_Message(status_);
  TF_Buffer* int32 = TF_NewBufferFromString("\x30\x03", 2);
  TF_SetAttr(graph_, cast, "DstT", int32, status_);  // nobody reads it yet
  EXPECT_EQ(TF_GetCode(status_), TF_OK) << TF_Message(status_);
  d = TF_NewOperation(graph_, "Neg", "neg");
  TF_AddInput(d, {cast, 0});
  EXPECT_NE(TF_FinishOperation(d, status_), nullptr);
  TF_Buffer* real = TF_NewBufferFromString("\x30\x01", 2);
  TF_SetAttr(graph_, cast, "DstT", real, status_);
  ExpectError(TF_INVALID_ARGUMENT,
              "Input 0 of node neg was passed float from cast:0 incompatible "
              "with expected int32.");
  EXPECT_EQ(TF_OperationOutputType({cast, 0}), TF_INT32);
  // A constant's type and its tensor go together.
  TF_Tensor* t = TF_AllocateTensor(TF_FLOAT, nullptr, 0, 4);
  d = TF_NewOperation(graph_, "Const", "c");
  TF_SetAttrTensor(d, "value", t, status_);
  TF_SetAttrType(d, "dtype", TF_FLOAT);
  TF_Operation* c = TF_FinishOperation(d, status_);
  ASSERT_NE(c, nullptr);
  TF_SetAttr(graph_, c, "dtype", int32, status_);
  ExpectError(TF_INVALID_ARGUMENT, "value has type float, attr dtype says");
  EXPECT_EQ(TF_OperationOutputType({c, 0}), TF_FLOAT);
  TF_DeleteTensor(t);
  TF_DeleteBuffer(int32);
  TF_DeleteBuffer(real);
}

// Upstream makes nodes of them, which cannot run.
TEST_F(CApiMisuse, AttributesThatFunctionsDecideAreNone) {
  TF_OperationDescription* d = TF_NewOperation(graph_, "Placeholder", "p");
  TF_SetAttrPlaceholder(d, "dtype", "T");
  EXPECT_EQ(TF_FinishOperation(d, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT,
              "AttrValue must not be a placeholder ('T')\n\t for attr 'dtype'");
}

TEST_F(CApiMisuse, BytesAreChecked) {
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, "\xff\xff", 2, status_);
  ExpectError(TF_INVALID_ARGUMENT, "Unparseable ConfigProto");
  TF_DeleteSessionOptions(options);
  EXPECT_EQ(TF_FunctionImportFunctionDef("\xff\xff", 2, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_FunctionImportFunctionDef("", 0, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "no name");
  TF_Buffer* junk = TF_NewBufferFromString("\xff\xff", 2);
  TF_ImportGraphDefOptions* import = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph_, junk, import, status_);
  ExpectError(TF_INVALID_ARGUMENT);
  EXPECT_EQ(TF_NewApiDefMap(junk, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT);
  TF_DeleteImportGraphDefOptions(import);
  TF_DeleteBuffer(junk);
  const int64_t negative[] = {-1};
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, negative, 1, 4), nullptr);
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, huge, 2, SIZE_MAX), nullptr);
  EXPECT_EQ(TF_AllocateTensor(static_cast<TF_DataType>(999), nullptr, 0, 8),
            nullptr);
}

TEST_F(CApiMisuse, WhatIsNotThereSaysSo) {
  TF_Reset(nullptr, nullptr, 0, status_);
  ExpectError(TF_INVALID_ARGUMENT, "opt");
  TF_RegisterFilesystemPlugin("x.so", status_);
  ExpectError(TF_UNIMPLEMENTED);
  EXPECT_EQ(TF_LoadLibrary("/no/such/library.so", status_), nullptr);
  ExpectError(TF_NOT_FOUND, "/no/such/library.so");
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Reset(options, nullptr, 0, status_);
  ExpectError(TF_UNIMPLEMENTED, "TF_Reset");
  TF_SetTarget(options, "tpu://host:1");
  EXPECT_EQ(TF_NewSession(graph_, options, status_), nullptr);
  ExpectError(TF_NOT_FOUND, "No session factory registered");
  TF_DeleteSessionOptions(options);
}

// What a server does is in tests/c/servers.c.
TEST_F(CApiMisuse, ServersThatAreNone) {
  EXPECT_EQ(TF_NewServer(nullptr, 0, status_), nullptr);
  ExpectError(TF_NOT_FOUND, "No server factory registered");
  EXPECT_EQ(TF_NewServer(nullptr, 5, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "ServerDef");
  TF_ServerStart(nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "server");
  TF_ServerStop(nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "server");
  TF_ServerJoin(nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "server");
  EXPECT_STREQ(TF_ServerTarget(nullptr), "");
  TF_DeleteServer(nullptr);
}

// The protocol comes last: without its end nothing is listened at.
TEST_F(CApiMisuse, ServerDefsThatAreCut) {
  tensorflow::ServerDef def;
  auto* job = def.mutable_cluster()->add_job();
  job->set_name("local");
  (*job->mutable_tasks())[0] = "localhost:0";
  def.set_job_name("local");
  def.set_protocol("grpc");
  const std::string bytes = def.SerializeAsString();
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(TF_NewServer(bytes.data(), cut, status_), nullptr) << cut;
    ExpectError(TF_GetCode(status_) == TF_NOT_FOUND ? TF_NOT_FOUND
                                                    : TF_INVALID_ARGUMENT,
                "ServerDef");
  }
}

// What contexts do on clusters is in tests/c/eager_clusters.c.
TEST_F(CApiMisuse, ContextsWithoutAClusterSaySo) {
  TFE_ContextSetServerDef(nullptr, 0, "", 0, status_);
  ExpectError(TF_INVALID_ARGUMENT, "ctx");
  TFE_ContextUpdateServerDef(nullptr, 0, "", 0, status_);
  ExpectError(TF_INVALID_ARGUMENT, "ctx");
  EXPECT_FALSE(TFE_ContextCheckAlive(nullptr, "x", status_));
  ExpectError(TF_INVALID_ARGUMENT, "ctx");
  TFE_ContextAsyncWait(nullptr, status_);
  ExpectError(TF_INVALID_ARGUMENT, "ctx");
  TFE_ContextOptions* options = TFE_NewContextOptions();
  TFE_Context* context = TFE_NewContext(options, status_);
  TFE_DeleteContextOptions(options);
  TFE_ContextSetServerDef(context, 0, nullptr, 5, status_);
  ExpectError(TF_INVALID_ARGUMENT, "Invalid tensorflow.ServerDef");
  TFE_ContextSetServerDefWithTimeoutAndRetries(context, -1, "\xff", 1, -1, -1,
                                               status_, true);
  ExpectError(TF_INVALID_ARGUMENT, "Invalid tensorflow.ServerDef");
  TFE_ContextUpdateServerDef(context, 0, "", 0, status_);
  ExpectError(TF_FAILED_PRECONDITION, "The context has no cluster");
  EXPECT_FALSE(TFE_ContextCheckAlive(context, nullptr, status_));
  ExpectError(TF_INVALID_ARGUMENT, "worker_name");
  EXPECT_FALSE(TFE_ContextCheckAlive(context, "/job:a/task:0", status_));
  ExpectError(TF_FAILED_PRECONDITION, "The context has no cluster");
  TFE_ContextAsyncWait(context, status_);
  EXPECT_EQ(TF_GetCode(status_), TF_OK);
  TFE_DeleteContext(context);
  EXPECT_EQ(TFE_GetServerDef(nullptr, status_), nullptr);
  ExpectError(TF_INVALID_ARGUMENT, "text_proto");
}

TEST_F(CApiMisuse, MoreProcessorsThanMemoryHolds) {
  tensorflow::ConfigProto config;
  (*config.mutable_device_count())["CPU"] = INT32_MAX;
  const std::string bytes = config.SerializeAsString();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetConfig(options, bytes.data(), bytes.size(), status_);
  ExpectError(TF_INVALID_ARGUMENT, "device_count[\"CPU\"] is at most 1024");
  TF_DeleteSessionOptions(options);
}

}  // namespace
