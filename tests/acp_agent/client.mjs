// One task by the official TypeScript library: a client whose file has unsaved text, and that agrees to the first offer.
// Usage: node client.mjs ENTRY FILE UNSAVED TASK PROGRAM [ARGUMENT ...]; prints what it saw as one line of JSON.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { dirname } from "node:path";
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [entry, file, unsaved, task, program, ...words] = process.argv.slice(2);
const acp = await import(pathToFileURL(entry).href);
const child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const seen = { kinds: [], said: "", asked: [], buffer: unsaved };

const client = acp
  .client({ name: "test" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.toolCall);
    const agreed = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: agreed.optionId } };
  })
  .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => {
    if (params.path !== file) throw acp.RequestError.resourceNotFound(params.path);
    return { content: seen.buffer };
  })
  .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => {
    if (params.path === file) seen.buffer = params.content;
    writeFileSync(params.path, params.content);
    return {};
  });

await client.connectWith(stream, async (agent) => {
  const fs = { readTextFile: true, writeTextFile: true };
  seen.hello = await agent.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs },
  });
  await agent.buildSession(dirname(file)).withSession(async (session) => {
    session.prompt(task);
    for (;;) {
      const message = await session.nextUpdate();
      if (message.kind === "stop") {
        seen.end = message.response;
        return;
      }
      const { update } = message.notification;
      seen.kinds.push(update.sessionUpdate);
      if (update.sessionUpdate === "agent_message_chunk") seen.said += update.content.text;
    }
  });
});
console.log(JSON.stringify(seen));
child.stdin.end();
child.on("exit", () => process.exit(0));
