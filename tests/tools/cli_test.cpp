// The command line as a user meets it: exit codes, one-line refusals, nothing written on failure.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/tools/cli_fixture.h"

namespace {

/// Heads and ids that do not divide, padded: judged, explained, as a program file, and refused.
TEST_F(Cli, PadsHeadsAndIds) {
  const std::string own = " --model palm-tiny,layers=1,E=12,F=12,H=4,K=2,Q=2,V=7";
  const std::string model = " --torus 2x1x3" + own;
  const std::string flags = model + " --batch 6";
  const std::string pads = " --pad-heads 6 --pad-vocab 12";
  expect_refused("verify" + flags, "padding that divides:" + pads);
  expect_refused("verify" + flags + " --pad-heads 5", "case_pad: pad_heads=5 is not a multiple");
  expect_refused("verify" + flags + " pad_heads=6", "did you mean --pad-heads 6?");
  const Outcome judged = run("verify --prefill ws2d:batch" + flags + pads);
  EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
  EXPECT_NE(judged.out.find("\n     pad_heads=6 pad_vocab=12\n"), std::string::npos) << judged.out;
  const Outcome explained = run("explain ws2d:batch" + flags + pads);
  EXPECT_NE(explained.out.find(",V=7, pad_heads=6 pad_vocab=12\n"), std::string::npos)
      << explained.out << explained.err;
  // A run shows the model's own heads and ids: those that one chip has without padding.
  const auto shown = [&](const std::string& of) {
    return nlohmann::json::parse(
        run("run --json --checkpoints --prefill ws2d:batch --batch 6" + of).out);
  };
  const auto padded = shown(model + pads), alone = shown(" --torus 1x1x1" + own);
  EXPECT_EQ(padded["generated"], alone["generated"]);
  EXPECT_EQ(padded["checkpoints"], alone["checkpoints"]);
  // What a program is written for is said in its text, and it is judged with that.
  write("padded.txt", run("explain ws2d:batch --text" + model + pads).out);
  const Outcome program = run("verify --program padded.txt" + flags + pads);
  EXPECT_EQ(program.code, 0) << program.out << program.err;
}

TEST_F(Cli, AStrategysTextIsAProgramFile) {
  for (const char* act : {"f32", "bf16"}) {
    const std::string flags = std::string(kSmall) + " --act " + act;
    const Outcome text = run("explain ws2d:batch --text " + flags);
    ASSERT_EQ(text.code, 0) << text.err;
    EXPECT_TRUE(text.out.starts_with("# One layer of ws2d:batch")) << text.out;
    write("p.txt", text.out);
    const Outcome judged = run("verify --program p.txt --json " + flags);
    EXPECT_EQ(judged.code, 0) << judged.out << judged.err;
    const auto json = nlohmann::json::parse(judged.out);
    EXPECT_EQ(json["cases"][0]["program"], "p.txt");
    EXPECT_NE(std::string(json["cases"][0]["case"]).find("batch=12 "), std::string::npos);
    const auto explained =
        nlohmann::json::parse(run("explain --program p.txt --json --paper " + flags).out);
    EXPECT_EQ(explained["programs"][1]["program"], "layer");
  }
  // The default case, and one letter swapped in it.
  const Outcome text = run("explain ws2d:batch --text");
  write("p.txt", text.out);
  EXPECT_EQ(run("verify --program p.txt").code, 0);
  EXPECT_EQ(run("explain --program p.txt --case x").code, 2);
  std::string swapped = text.out;
  swapped.replace(swapped.find("all_gather(x, E, zy)"), 20, "all_gather(x, E, yz)");
  write("q.txt", swapped);
  for (const char* verb : {"verify", "explain"})
    expect_refused(std::string(verb) + " --program q.txt",
                   "all_gather_c3: q.txt line 19: xg: yz is not the minor-most suffix of E_xzy");
  // Legal, but the residual is left out.
  std::string wrong = text.out;
  wrong.replace(wrong.find("add(x, yr)"), 10, "add(yr, yr)");
  write("w.txt", wrong);
  const Outcome judged = run("verify --program w.txt");
  EXPECT_EQ(judged.code, 1);
  EXPECT_NE(judged.out.find("w.txt line 48: step prefill.c0.layer0.out = add(yr, yr)"),
            std::string::npos)
      << judged.out;
  EXPECT_NE(judged.out.find("reproduce: shardproof verify --program w.txt --case \"torus=4x2x3"),
            std::string::npos)
      << judged.out;
  EXPECT_EQ(run("verify --program w.txt --json").code, 1);
  // Names that a shell or JSON does not take as they are.
  write("my w.txt", wrong);
  EXPECT_NE(run("verify --program 'my w.txt'").out.find("--program 'my w.txt' --case"),
            std::string::npos);
  write("b\xff.txt", text.out);
  EXPECT_EQ(run("verify --program b\xff.txt --json").code, 0);
}

TEST_F(Cli, RefusesAProgramThatIsNone) {
  write("p.txt", run("explain ws2d --text").out);
  write("empty.txt", "");
  write("binary.txt", std::string("\x7f"
                                  "ELF\0\1",
                                  6));
  expect_refused("verify --case ''", "flag_c2: the value of --case is empty");
  expect_refused("verify --program none.txt", "program_f1: none.txt cannot be read");
  expect_refused("verify --program .", "program_f1");
  expect_refused("verify --program empty.txt", "program_f2: empty.txt holds no statement");
  expect_refused("verify --program binary.txt", "program_f3: binary.txt is not text");
  expect_refused("verify --program p.txt --prefill ws2d", "program_f4");
  expect_refused("verify --program p.txt --case 'torus=4x2x3 decode=ws2d'", "program_f4");
  expect_refused("verify --program p.txt --act bf16", "layer_c4");
  expect_refused("verify --program p.txt --cases 3", "verify_c3");
  expect_refused("verify --program p.txt --torus 5x1x1", "not divisible");
  expect_refused("explain --program p.txt ws2d", "explain_c1");
  expect_refused("explain", "explain_c1");
  expect_refused("explain ws2d --text --json", "explain_c2");
}

TEST_F(Cli, BadInputIsOneLineAndExitTwo) {
  expect_refused("verify --torus 5x1x1", "nearest");
  expect_refused("verify --torus 0x1x1", "size 0");
  expect_refused("verify --torus 1000x1000x1000", "4096");
  expect_refused("verify --prefill ws3d", "legal: ws1d:heads");
  expect_refused("verify --prefill wg-xyz:bach", "did you mean wg-xyz:batch?");
  expect_refused("verify --prefill wg-xyz:heads", "wg-xyz:batch");
  expect_refused("verify --torus 4x2x3 --prefill ws2d:batch --batch 5", "smallest legal is 24");
  expect_refused("verify --case 'torsu=2x2x2'", "did you mean torus");
  expect_refused("verify --case 'gen=2 gen=3'", "given twice");
  expect_refused("verify --case 'torus=2x2x2' --torus 2x2x2", "given twice");
  expect_refused("verify --model palm-huge", "palm-");
  expect_refused("verify --model palm-tiny,E=0", "E");
  expect_refused("verify --gen 0", "gen=0");
  expect_refused("verify --cases -3", "--cases");
  expect_refused("verify --cases x", "--cases");
  expect_refused("verify --cases 0", "--cases 0");
  expect_refused("run --prompt-file ''", "--prompt-file is empty");
  expect_refused("run --prompt 3 --prompt-file " + write("p.txt", "ab\n"), "--prompt");
  expect_refused("weights generate --seed -1 --out w.h5", "seed=-1");
  expect_refused("weights generate --model palm-tiny,E=100000,F=1000000 --out w.h5", "GiB");
  expect_refused("verify --weights a.h5 --weights b.h5", "a.h5");
  expect_refused("verify --threads -1", "--threads");
  expect_refused("verify --cases 3 --torus 2x2x2", "--seed only");
  expect_refused("verify --no-such-flag", "--no-such-flag");
  expect_refused("frobnicate", "--help");
  expect_refused("", "--help");
  expect_refused("explain ws9d", "legal");
  expect_refused("explain wg-xyz:heads", "wg-xyz:batch");
  expect_refused("verify --torus 16x16x16 --model palm-tiny,E=1048576,F=16777216,H=4096,V=4096",
                 "GiB");
  expect_refused("verify --weights nowhere.h5", "nowhere.h5");
  expect_refused("run --prompt-file nowhere.txt", "nowhere.txt");
  expect_refused("run --checkpoints", "--json");
  expect_refused("weights inspect nowhere.h5", "nowhere.h5");
  expect_refused("weights generate --out /nowhere/at/all/w.h5", "/nowhere/at/all/w.h5");
  expect_refused("weights generate --model palm-tiny,Q=3 --out w.h5", "Q");
}

TEST_F(Cli, BadPromptFilesAreNamed) {
  const std::string run = std::string("run ") + kSmall + " --prompt-file ";
  expect_refused(run + write("empty.txt", ""), "empty.txt");
  expect_refused(run + write("hole.txt", "abc\n\nabc\n"), "line 2");
  expect_refused("run --torus 1x1x1 --model palm-tiny,V=8 --prompt-file " + write("v.txt", "abc\n"),
                 "V=8");
  expect_refused(run + write("two.txt", "ab\ncd\n") + " --batch 1", "batch=1");
}

TEST_F(Cli, BrokenWeightsFilesAreRefused) {
  ASSERT_EQ(
      run(std::string("weights generate --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264") +
          " --seed 2 --out w.h5")
          .code,
      0);
  const std::string whole = slurp(path("w.h5"));
  expect_refused("verify --weights " + write("cut.h5", whole.substr(0, whole.size() / 2)),
                 "cut.h5");
  expect_refused("verify --weights " + write("text.h5", "this is no HDF5 file\n"), "text.h5");
  expect_refused("verify --weights w.h5 --model palm-tiny", "palm-tiny");
}

TEST_F(Cli, NothingButARegularFileIsReplaced) {
  const std::string small =
      "weights generate --model palm-tiny,layers=1,E=8,F=8,H=8,Q=2,V=8 --out ";
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused(small + "pipe", "not a regular file");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  fs::create_directory(path("folder"));
  expect_refused(small + "folder", "folder");
  write("real.h5", "old");
  fs::create_symlink("real.h5", path("link.h5"));
  EXPECT_EQ(run(small + "link.h5").code, 0);
  EXPECT_TRUE(fs::is_symlink(path("link.h5")));  // written through, not replaced
  EXPECT_EQ(run("weights inspect real.h5").code, 0);
}

TEST_F(Cli, TracesOneRun) {
  const std::string small = std::string(kSmall) + " --prefill ws2d:batch --trace ";
  expect_refused("run " + small + "/nowhere/t.h5", "trace_c1");
  expect_refused("verify " + small + ".", "not a regular file");
  expect_refused("verify --trace t.h5", "verify_c4");
  expect_refused("verify --cases 3 --trace t.h5", "verify_c4");
  expect_refused("run --torus 8x8x8 --model palm-wide --batch 512 --prompt 900 --trace t.h5",
                 "GiB");
  Outcome o = run("verify " + small + "v.h5");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("1 case: 1 equal"), std::string::npos) << o.out;
  o = run("run " + small + "r.h5");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(files(), 2U);
  EXPECT_TRUE(slurp(path("v.h5")) == slurp(path("r.h5")));
  // With the rows of a prompt file, padded; together with --checkpoints.
  const std::string prompt = write("p.txt", "hello\nworld\n");
  o = run("run " + small + "p.h5 --json --checkpoints --prompt-file " + prompt);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_FALSE(nlohmann::json::parse(o.out)["checkpoints"].empty());
  EXPECT_TRUE(fs::is_regular_file(path("p.h5")));
}

TEST_F(Cli, SaysWhenItsOutputCannotBeWritten) {
  for (const char* verb : {"verify --torus 1x1x1", "explain ws2d", "--help", "run --json"}) {
    const std::string command = "'" + shardproof::program(verb) + "' " + verb + " 2>'" +
                                path("err").string() + "' >/dev/full";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << verb;
    EXPECT_NE(slurp(path("err")).find("output_c1"), std::string::npos)
        << verb << slurp(path("err"));
  }
  const int closed = std::system("'" SHARDPROOF_CLI "' verify --torus 1x1x1 >&- 2>&-");
  EXPECT_TRUE(WIFEXITED(closed));
}

TEST_F(Cli, VerifiesOneCaseAndAWeightsFile) {
  Outcome o = run(std::string("verify ") + kSmall + " --prefill wg-xyz:batch --decode ws2d:heads");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("1 case: 1 equal"), std::string::npos) << o.out;
  ASSERT_EQ(
      run("weights generate --model palm-tiny,layers=1,E=24,F=24,H=24,Q=2,V=264 --out w.h5").code,
      0);
  o = run("verify --weights w.h5 --torus 4x2x3 --prefill ws2d:batch");
  EXPECT_EQ(o.code, 0) << o.err;
  o = run("verify --weights w.h5 --json");
  EXPECT_EQ(o.code, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out);
  EXPECT_EQ(json["held"], true);
  EXPECT_EQ(json["totals"]["equal"], json["cases"].size());
  EXPECT_GE(json["cases"].size(), 20U);
}

TEST_F(Cli, RunPrintsOneRowOfIdsForEachLineOfThePrompt) {
  const std::string prompt = write("p.txt", "hello\nworld\nagain\n");
  const Outcome batch =
      run(std::string("run ") + kSmall + " --prefill wg-xyz:batch --decode ws2d:batch " +
          "--prompt-file " + prompt + " --gen 4 --seed 7");
  ASSERT_EQ(batch.code, 0) << batch.err;
  EXPECT_EQ(std::count(batch.out.begin(), batch.out.end(), '\n'), 3) << batch.out;
  EXPECT_EQ(std::count(batch.out.begin(), batch.out.end(), ' '), 9) << batch.out;
  // Another torus, another layout and no padding: the same ids.
  const Outcome heads =
      run("run --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264 --torus 1x2x1 --prefill ws1d "
          "--chunk 2 --threads 2 --prompt-file " +
          prompt + " --gen 4 --seed 7");
  EXPECT_EQ(heads.out, batch.out) << heads.err;
}

TEST_F(Cli, RunTakesACaseLineWithFlags) {
  const std::string model = "palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264";
  const std::string prompt = write("p.txt", "hello\nworld\n");
  const auto same = [&](const std::string& line, const std::string& flags, const std::string& all) {
    const Outcome by_line = run("run --json --case '" + line + "' " + flags);
    const Outcome by_flags = run("run --json " + all);
    EXPECT_EQ(by_line.code, 0) << by_line.err;
    EXPECT_EQ(by_line.out, by_flags.out) << line;
  };
  same("torus=2x2x3 model=" + model + " prefill=ws1d gen=3 seed=5", "",
       "--torus 2x2x3 --prefill ws1d --gen 3 --seed 5 --model " + model);
  same("torus=2x2x3 model=" + model, "--decode ws2d:batch --chunk 2",
       "--torus 2x2x3 --decode ws2d:batch --chunk 2 --model " + model);
  // What the line says counts as said: batch and chunk are not those of the prompt file.
  same("model=" + model + " batch=4 chunk=3", "--torus 1x2x1 --prompt-file " + prompt,
       "--torus 1x2x1 --batch 4 --chunk 3 --prompt-file " + prompt + " --model " + model);
  expect_refused("run --case 'gen=2' --gen 2", "case_c2");
  expect_refused("run --case 'prompt=3' --prompt-file " + prompt, "run_c2");
  expect_refused("run --case 'batch=1' --torus 1x1x1 --prompt-file " + prompt, "run_c3");
  expect_refused("run --case ' '", "flag_c2");
}

TEST_F(Cli, RunWithWeightsTakesTheModelFromTheFile) {
  ASSERT_EQ(run("weights generate --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264 --seed 7 "
                "--out w.h5")
                .code,
            0);
  const std::string prompt = write("p.txt", "hello\n");
  const std::string rest = " --torus 1x2x1 --gen 3 --prompt-file " + prompt;
  const Outcome file = run("run --weights w.h5" + rest);
  const Outcome seed =
      run("run --model palm-tiny,layers=1,E=24,F=24,H=12,Q=2,V=264 --seed 7" + rest);
  EXPECT_EQ(file.code, 0) << file.err;
  EXPECT_EQ(file.out, seed.out);
  // A file and a type together; a seed that would seed nothing.
  EXPECT_EQ(run("run --weights w.h5 --weights bf16" + rest).code, 0);
  expect_refused("run --seed 3 --weights w.h5" + rest, "flag_c6");
}

TEST_F(Cli, TextFitsEightyColumns) {
  for (const char* arguments :
       {"explain ws1d:heads",
        "explain ws1d:batch --model palm-tiny,K=24",
        "explain ws2d:heads",
        "explain ws2d:batch --prefill wg-xyz:batch",
        "explain wg-xyz:batch --model palm-tiny,K=6",
        "explain ws2d:heads --prefill ws1d:batch --paper",
        "explain ws1d --act bf16",
        "--help",
        "explain sp:2d --model palm-tiny,K=6",
        "explain ws2d:batch --batch 72 --prompt 999 --lengths 999,998,997 --layouts",
        "explain ws1d:heads --prompt 900 --lengths ragged",
        "verify --torus 4x2x3 --prefill ws2d:few-heads-batch",
        "verify --help",
        "run --help",
        "explain --help",
        "weights --help",
        "weights generate --help",
        "weights quantize --help",
        "weights fold --help",
        "weights inspect --help",
        "verify --torus 1x1x1 --model palm-tiny,E=8,F=8,H=8,Q=2,V=8"}) {
    const Outcome o = run(arguments);
    EXPECT_EQ(o.code, 0) << arguments << o.err;
    std::istringstream lines(o.out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80U) << arguments << "\n" << line;
  }
}

TEST_F(Cli, ExplainSaysWhereWeightsRestTwice) {
  EXPECT_NE(run("explain ws2d:batch --prefill ws1d").out.find("both are placed before the run"),
            std::string::npos);
  EXPECT_NE(
      run("explain ws2d:batch --prefill wg-xyz:batch").out.find("placed before the run, once"),
      std::string::npos);
  const auto json = nlohmann::json::parse(run("explain ws2d:batch --json").out);
  EXPECT_EQ(json["strategy"], "ws2d:batch");
  EXPECT_EQ(json["programs"].size(), 4U);
}

TEST_F(Cli, ExplainCountsWhatWireAndCacheSay) {
  // Of each move of explain's programs, by the value: its bytes an element.
  const auto bytes = [&](const std::string& flags) {
    const Outcome o =
        run("explain ws2d:batch --prefill ws2d:heads --json --model palm-tiny,K=24" + flags);
    EXPECT_EQ(o.code, 0) << o.err;
    std::map<std::string, std::string> of;
    const auto json = nlohmann::json::parse(o.out);
    for (const auto& program : json["programs"])
      for (const auto& step : program["steps"])
        if (step.contains("sends"))
          of[step["results"][0]["is"]] += step["sends"]["bytes_per_element"].dump();
    return of;
  };
  const auto f32 = bytes(""), wire = bytes(" --wire bf16");
  EXPECT_EQ(f32.at("gate"), "4");
  EXPECT_EQ(wire.at("gate"), "2");
  EXPECT_EQ(wire.at("raw embed"), "2");
  EXPECT_EQ(wire.at("stat ss"), "4");
  EXPECT_EQ(wire.at("raw logits"), "4");
  EXPECT_EQ(wire.at("k_cache"), f32.at("k_cache"));
  EXPECT_EQ(f32.at("k_cache"), "4");
  EXPECT_EQ(bytes(",cache=bf16").at("k_cache"), "2");
  EXPECT_EQ(bytes(",cache=f32 --act bf16").at("k_cache"), "4");
  EXPECT_EQ(bytes(" --numerics released").at("v_cache"), "2");
  EXPECT_EQ(bytes(" --numerics released").at("raw gate"), "2");
  const Outcome text = run("explain ws2d:batch --wire bf16");
  EXPECT_NE(text.out, run("explain ws2d:batch").out);
}

TEST_F(Cli, ExplainDrawsALayer) {
  const Outcome o = run("explain ws2d:batch --svg layer.svg");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(files(), 1U);
  EXPECT_EQ(slurp(path("layer.svg")), slurp(SHARDPROOF_DOCS "/ws2d-batch-4x2x3.svg"))
      << "if the picture is meant to change: build/shardproof explain ws2d:batch --svg "
         "docs/ws2d-batch-4x2x3.svg";
  int drawn = 0;
  for (const char* strategy : {"ws1d:heads", "ws1d:batch", "ws2d:heads", "ws2d:batch",
                               "wg-xyz:batch", "ws2d:batch --prefill wg-xyz:batch --paper"})
    for (const char* torus : {"1x1x1", "3x1x2", "4x2x3", "4x4x4"}) {
      const std::string arguments = std::string("explain ") + strategy + " --torus " + torus +
                                    " --model palm-tiny,E=192,F=192,H=192,V=192 --svg " +
                                    std::to_string(drawn++) + ".svg";
      EXPECT_EQ(run(arguments).code, 0) << arguments;
    }
  EXPECT_NE(slurp(path("22.svg")).find("after prefill by wg-xyz:batch; the hand-over is not drawn"),
            std::string::npos);
  if (std::system("command -v python3 >/dev/null") == 0) {
    const std::string read =
        "import glob, xml.etree.ElementTree as t; [t.parse(f) for f in glob.glob(\"*.svg\")]";
    EXPECT_EQ(
        std::system(("cd '" + directory_.string() + "' && python3 -c '" + read + "'").c_str()), 0);
  }
}

TEST_F(Cli, APictureIsWrittenWholeOrNotAtAll) {
  expect_refused("explain ws2d --svg /nowhere/at/all/p.svg", "/nowhere/at/all/p.svg");
  expect_refused("explain ws2d --torus 5x1x13 --model palm-mini,E=65,F=65,H=65,V=65 --svg p.svg",
                 "at most 64");
  expect_refused("explain ws2d --svg p.svg --json", "--json");
  expect_refused("explain ws2d --svg ''", "--svg");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused("explain ws2d --svg pipe", "not a regular file");
  fs::create_directory(path("folder"));
  expect_refused("explain ws2d --svg folder", "not a regular file");
}

TEST_F(Cli, HelpHasAnExampleAndVersionANumber) {
  for (const char* verb : {"", "verify", "explain", "run", "weights fold", "weights generate",
                           "weights quantize", "weights inspect"})
    EXPECT_NE(run(std::string(verb) + " --help").out.find("Example: shardproof"), std::string::npos)
        << verb;
  EXPECT_EQ(run("--version").out.rfind("shardproof 0.", 0), 0U);
}

}  // namespace
