// The memory of aether for opencode. Written by `aether install opencode`; `aether uninstall opencode` removes it.
import { spawn } from "node:child_process"

const PROGRAM = [];
// A start that is not answered in this time is not waited for.
const SECONDS = { SessionStart: 15, UserPromptSubmit: 15, SubagentStart: 15, PreToolUse: 5, PreCompact: 30, SessionEnd: 2 }

// Report one event, and return what aether answers: {context} for the model, {notice} for the log. It never fails.
function report(event, payload) {
  return new Promise((resolve) => {
    let text = ""
    let child
    const answer = () => {
      clearTimeout(timer)
      try {
        resolve(text.trim() ? JSON.parse(text) : {})
      } catch {
        resolve({})
      }
    }
    const timer = setTimeout(() => {
      text = ""
      child?.kill()
      answer()
    }, (SECONDS[event] ?? 10) * 1000)
    try {
      child = spawn(PROGRAM[0], [...PROGRAM.slice(1), event], { stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return answer()
    }
    child.on("error", answer)
    child.stdin.on("error", () => {})
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (part) => (text += part))
    child.on("close", answer)
    child.stdin.end(JSON.stringify({ hook_event_name: event, ...payload }))
  })
}

export const Aether = async ({ client, directory }) => {
  // Of each session: the session that started it (sub-agents only), its agent, what its model is told, its last text.
  const sessions = new Map()

  const identity = (id, session) =>
    session.parent
      ? { session_id: session.parent, agent_id: id, agent_type: session.agent || "agent", cwd: directory }
      : { session_id: id, cwd: directory }

  const start = async (id, session, source) => {
    const event = session.parent ? "SubagentStart" : "SessionStart"
    const { context } = await report(event, { ...identity(id, session), source })
    session.brief = context
  }

  const open = async (id, agent) => {
    let session = sessions.get(id)
    if (!session) {
      let parent
      try {
        parent = (await client.session.get({ path: { id } })).data?.parentID
      } catch {}
      session = { parent, agent, last: "" }
      sessions.set(id, session)
      await start(id, session, "startup")
    }
    return session
  }

  return {
    "chat.message": async (input, output) => {
      const session = await open(input.sessionID, input.agent)
      if (session.parent) return // the words are those of an agent
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      const prompt = typed.map((part) => part.text).join("\n")
      if (!prompt.trim()) return
      const { context } = await report("UserPromptSubmit", {
        ...identity(input.sessionID, session), prompt, prompt_id: output.message.id,
      })
      session.recalled = context
    },
    "experimental.chat.system.transform": async (input, output) => {
      const session = sessions.get(input.sessionID)
      if (session?.brief) output.system.push(session.brief)
      if (session?.recalled) output.system.push(session.recalled)
    },
    "tool.execute.before": async (input, output) => {
      const session = await open(input.sessionID)
      const { stop } = await report("PreToolUse", {
        ...identity(input.sessionID, session), tool_name: input.tool, tool_input: output.args ?? {},
      })
      if (stop) throw new Error(stop)
    },
    "tool.execute.after": async (input, output) => {
      const session = await open(input.sessionID)
      await report("PostToolUse", {
        ...identity(input.sessionID, session),
        tool_name: input.tool, tool_input: input.args ?? {}, tool_use_id: input.callID, tool_response: output.output,
      })
    },
    "experimental.text.complete": async (input, output) => {
      const session = sessions.get(input.sessionID)
      if (session) session.last = output.text
    },
    "experimental.session.compacting": async (input) => {
      const session = await open(input.sessionID)
      await report("PreCompact", { ...identity(input.sessionID, session), trigger: "auto" })
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      const session = sessions.get(id)
      if (!session) return
      if (event.type === "session.idle") {
        await report(session.parent ? "SubagentStop" : "Stop", {
          ...identity(id, session), last_assistant_message: session.last,
        })
        session.last = ""
      } else if (event.type === "session.compacted" && !session.parent) {
        await start(id, session, "compact")
      } else if (event.type === "session.deleted" && !session.parent) {
        sessions.delete(id)
        await report("SessionEnd", { ...identity(id, session), reason: "deleted" })
      }
    },
    dispose: async () => {
      const open = [...sessions].filter(([, session]) => !session.parent)
      await Promise.all(open.map(([id, session]) => report("SessionEnd", { ...identity(id, session), reason: "exit" })))
    },
  }
}
