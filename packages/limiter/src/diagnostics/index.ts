export const CHANNELS = {
  acquire: "zae-limiter:acquire",
  end: "zae-limiter:end",
  charge: "zae-limiter:charge",
} as const;
