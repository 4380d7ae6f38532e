// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/endian.h"
#include "codec/pickle_names.h"
#include "testing/golden_files.h"

namespace shardwright::pickle {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using std::string_literals::operator""s;

Audit audit(const std::string& pickle) { return audit_pickle(as_bytes(pickle)); }

TEST(PickleNames, WhatRunsCodeIsToldFromWhatMakesValues) {
  struct Case {
    const char* module;
    const char* name;
    NameMeaning meaning;
  };
  const std::vector<Case> cases = {
      {"posix", "system", NameMeaning::kRunsCode},
      {"os", "popen", NameMeaning::kRunsCode},
      {"subprocess", "Popen", NameMeaning::kRunsCode},
      {"builtins", "eval", NameMeaning::kRunsCode},
      {"__builtin__", "exec", NameMeaning::kRunsCode},
      {"builtins", "__import__", NameMeaning::kRunsCode},
      {"importlib", "import_module", NameMeaning::kRunsCode},
      {"importlib.util", "module_from_spec", NameMeaning::kRunsCode},
      {"sys", "modules", NameMeaning::kRunsCode},
      {"runpy", "run_path", NameMeaning::kRunsCode},
      {"shutil", "rmtree", NameMeaning::kRunsCode},
      {"socket", "create_connection", NameMeaning::kRunsCode},
      {"pty", "spawn", NameMeaning::kRunsCode},
      {"io", "open", NameMeaning::kRunsCode},
      {"_io", "FileIO", NameMeaning::kRunsCode},
      {"operator", "attrgetter", NameMeaning::kRunsCode},
      {"types", "FunctionType", NameMeaning::kRunsCode},
      {"torch.hub", "load", NameMeaning::kRunsCode},
      {"torch", "load", NameMeaning::kRunsCode},
      {"torch.storage", "_load_from_bytes", NameMeaning::kRunsCode},
      {"torch.serialization", "os.system", NameMeaning::kRunsCode},
      {"torch.utils.collect_env", "run", NameMeaning::kRunsCode},
      {"torch._inductor.codecache", "compile_file", NameMeaning::kRunsCode},
      {"numpy.f2py.crackfortran", "getlincoef", NameMeaning::kRunsCode},
      {"megatron.training", "Config.__init__.__globals__", NameMeaning::kRunsCode},
      {"collections", "OrderedDict", NameMeaning::kValue},
      {"argparse", "Namespace", NameMeaning::kValue},
      {"__builtin__", "set", NameMeaning::kValue},
      {"_codecs", "encode", NameMeaning::kValue},
      {"torch", "bfloat16", NameMeaning::kValue},
      {"torch", "FloatStorage", NameMeaning::kValue},
      {"torch._utils", "_rebuild_tensor_v2", NameMeaning::kValue},
      {"torch.distributed.checkpoint.metadata", "Metadata", NameMeaning::kValue},
      {"numpy._core.multiarray", "_reconstruct", NameMeaning::kValue},
      {"pathlib", "PosixPath", NameMeaning::kValue},
      {"signal", "Signals", NameMeaning::kValue},
      {"signal", "SIGTERM", NameMeaning::kValue},
      {"signal", "SIG_BLOCK", NameMeaning::kValue},
      {"signal", "signal", NameMeaning::kRunsCode},
      {"signal", "SIGx", NameMeaning::kRunsCode},
      {"signal", "ITIMER_REAL", NameMeaning::kRunsCode},
      {"megatron.core.enums", "ModelType", NameMeaning::kTraining},
      {"transformer_engine.common.recipe", "DelayedScaling", NameMeaning::kTraining},
      {"torch", "per_tensor_affine", NameMeaning::kTraining},
      {"torch.nn.modules.linear", "Linear", NameMeaning::kTraining},
      {"megatron.training", "Config.Kind", NameMeaning::kTraining},
      {"my_company.trainer", "Config", NameMeaning::kUnknown},
      {"__main__", "Format", NameMeaning::kUnknown},
      {"test.trainer", "Config", NameMeaning::kUnknown},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(meaning_of(c.module, c.name), c.meaning) << c.module << "." << c.name;
  }
}

TEST(PickleAudit, NamesWhatIsDroppedAgain) {
  const Audit popped = audit("\x80\x02}cposix\nsystem\nX\x02\x00\x00\x00id\x85R0."s);
  EXPECT_THAT(popped.runs, ElementsAre("posix.system"));
  EXPECT_FALSE(popped.error);
}

TEST(PickleAudit, NamesWhatRanBeforeThePickleBroke) {
  const Audit broken = audit(
      "\x80\x02"
      "cposix\nsystem\nX\x02\x00\x00\x00id\x85R\xff"s);
  EXPECT_THAT(broken.runs, ElementsAre("posix.system"));
  EXPECT_TRUE(broken.error);
}

TEST(PickleAudit, JudgesEveryWayToCall) {
  EXPECT_THAT(audit("(S'id'\nios\nsystem\n.").runs, ElementsAre("os.system")) << "INST";
  EXPECT_THAT(audit("(cos\nsystem\nS'id'\no.").runs, ElementsAre("os.system")) << "OBJ";
  EXPECT_THAT(audit("\x80\x02"
                    "csubprocess\nPopen\n)\x81.")
                  .runs,
              ElementsAre("subprocess.Popen"));
  EXPECT_THAT(audit("\x80\x04"
                    "csubprocess\nPopen\n)}\x92.")
                  .runs,
              ElementsAre("subprocess.Popen"));
  EXPECT_THAT(audit("\x80\x02\x82\x07.").runs, ElementsAre(HasSubstr("copyreg registry (code 7)")));
  EXPECT_THAT(audit("\x80\x04\x8c\x13torch.serialization\x8c\x09os.system\x93.").runs,
              ElementsAre("torch.serialization.os.system"));
  EXPECT_THAT(audit("\x80\x02"
                    "ctorch._utils\n_rebuild_tensor_v2\n}b.")
                  .runs,
              ElementsAre("a change of torch._utils._rebuild_tensor_v2"));
  EXPECT_THAT(audit("\x80\x02"
                    "cfunctools\npartial\n)R)R.")
                  .runs,
              ElementsAre("a call of what another call returned"));
}

TEST(PickleAudit, GetattrIsForMembersOfEnums) {
  EXPECT_TRUE(audit("\x80\x04\x8c\x08"
                    "builtins\x8c\x07getattr\x93\x8c\x06signal\x8c\x07Signals\x93"
                    "\x8c\x07SIGTERM\x86R.")
                  .is_harmless());
  EXPECT_TRUE(
      audit("cbuiltins\ngetattr\n(cmegatron.core.enums\nModelType\nS'encoder'\ntR.").is_harmless());
  EXPECT_THAT(audit("cbuiltins\ngetattr\n(ctorch\nserialization\nS'os'\ntR.").runs,
              Contains("builtins.getattr"));
  EXPECT_THAT(audit("cbuiltins\ngetattr\n(NS'x'\ntR.").runs, ElementsAre("builtins.getattr"));
}

TEST(PickleAudit, GetattrNamesTheClassWithinShardedTensor) {
  const auto runs = [](const std::string& within, const std::string& name,
                       const std::string& made) {
    const std::string length(1, static_cast<char>(name.size()));
    return audit(
               "\x80\x02"
               "cbuiltins\ngetattr\nctorch.distributed._shard.sharded_tensor.api\n" +
               within + "\nX" + length + "\0\0\0"s + name + "\x86R" + made + ".")
        .runs;
  };
  EXPECT_THAT(runs("ShardedTensor", "ProcessGroupState", ")\x81"), IsEmpty());
  EXPECT_THAT(runs("ShardedTensor", "ProcessGroupState", ")R"), Not(IsEmpty()));
  EXPECT_THAT(runs("ShardedTensor", "__setattr__", ")\x81"), Not(IsEmpty()));
  EXPECT_THAT(runs("ShardedTensorBase", "ProcessGroupState", ")\x81"), Not(IsEmpty()));
}

TEST(PickleAudit, AClassNamedByAPersistentIdIsNoCallOfAResult) {
  EXPECT_TRUE(audit("\x80\x02"
                    "ctorch.nn.modules.linear\nLinear\nQ)\x81.")
                  .is_harmless());
  EXPECT_FALSE(audit("\x80\x02"
                     "cposix\nsystem\nQ)R.")
                   .is_harmless());
}

TEST(PickleAudit, LooksIntoBytes) {
  const std::string inner =
      "\x80\x02"
      "cposix\nsystem\n)R.";
  const std::string bytes =
      "\x80\x04"
      "C"s +
      static_cast<char>(inner.size()) + inner + "\x85.";
  EXPECT_THAT(audit(bytes).runs, ElementsAre("posix.system"));
  EXPECT_THAT(audit("\x80\x04"
                    "C\x05random."s)
                  .runs,
              IsEmpty());
}

TEST(PickleAudit, CountsWhatFollows) {
  EXPECT_EQ(audit("}.abc").trailing_bytes, 3u);
  EXPECT_EQ(audit("}.").trailing_bytes, 0u);
}

TEST(PickleAudit, ListsNoMoreThanAScreenHolds) {
  EXPECT_EQ(listed({"a", "b"}), "a, b");
  EXPECT_EQ(listed({"a", "b", "c", "d", "e"}), "a, b, c, … 2 more");
  std::string many = "(";
  for (int i = 0; i < 1000; ++i) many += "cos\nf" + std::to_string(i) + "\n";
  EXPECT_EQ(audit(many + "t.").runs.size(), 100u);
  EXPECT_THAT(audit("cos\n\x1b[31m\n.").runs, ElementsAre(::testing::Not(HasSubstr("\x1b"))));
}

// Hand-made attacks: each runs code in Python's own loader.
TEST(PickleAudit, FindsTheAttacksOfTheCorpus) {
  for (const char* name :
       {"01_os_system_reduce", "02_hidden_in_state_dict", "02b_popped_payload",
        "03_stack_global_memo", "04_builtins_eval", "05_getattr_chain", "06_dotted_qualname",
        "07_inst_opcode", "08_obj_opcode", "09_newobj_ex", "10_build_on_class", "12_ext1"}) {
    const Audit found = audit(read_golden("malicious/pickle/" + std::string(name) + ".pkl"));
    EXPECT_THAT(found.runs, ::testing::Not(IsEmpty())) << name;
  }
}

}  // namespace
}  // namespace shardwright::pickle
